"""The tables of captures in the cache: made once (`build`), kept in a folder (`cache`), read without holding them (`store`)."""

"""What tests share: exchanges written as text, commands, other programs, and captures."""

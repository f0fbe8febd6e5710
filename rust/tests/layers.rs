//! Checks the imports between the modules of the engine. Imports must not form a cycle of files, and must not come from
//! a higher layer. The order of the layers is the numbered list in `src/lib.rs`.
//!
//! An import is a path in a `use` line. A path in the code is an import too if it starts at `crate`, `super`, `self`, a
//! child module or an imported module. The imported file is the file that defines the name. A `pub use` counts only if
//! the file itself needs the name. Unit tests are excluded, because they can use anything.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "a test that panics has failed, which is its purpose")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Path of a module in the crate, such as `["connection", "ack"]`; empty for `lib.rs`.
type ModulePath = Vec<String>;

/// Longest chain of re-exports to resolve.
const MAX_REEXPORTS: usize = 16;

#[derive(Debug, Default)]
struct Module {
    /// Path of the file, relative to `src`.
    file: String,
    /// Child modules with a file of their own.
    children: BTreeSet<String>,
    /// Names in `use` lines with their paths.
    imports: Vec<Import>,
    /// Paths in the rest of the code.
    paths: Vec<Vec<String>>,
    /// Single identifiers in the rest of the code.
    words: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Import {
    name: String,
    path: Vec<String>,
    public: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    /// `::`
    Separator,
    Sign(char),
}

/// The tokens of the code, without comments, strings and character literals.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    let (mut tokens, mut place) = (Vec::new(), 0);
    while place < chars.len() {
        let sign = at(place);
        if sign == '/' && at(place + 1) == '/' {
            while place < chars.len() && at(place) != '\n' {
                place += 1;
            }
        } else if sign == '"' {
            place += 1;
            while place < chars.len() && at(place) != '"' {
                place += if at(place) == '\\' { 2 } else { 1 };
            }
            place += 1;
        } else if sign == '\'' && at(place + 1) == '\\' {
            place += 3;
            while place < chars.len() && at(place) != '\'' {
                place += 1;
            }
            place += 1;
        } else if sign == '\'' && at(place + 2) == '\'' {
            place += 3;
        } else if is_word(sign) {
            let begin = place;
            while is_word(at(place)) {
                place += 1;
            }
            tokens.push(Token::Word(chars[begin..place].iter().collect()));
        } else if sign == ':' && at(place + 1) == ':' {
            tokens.push(Token::Separator);
            place += 2;
        } else {
            if !sign.is_whitespace() {
                tokens.push(Token::Sign(sign));
            }
            place += 1;
        }
    }
    tokens
}

/// The code without items that are compiled only for tests.
fn without_tests(source: &str) -> String {
    let mut kept = String::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        // In formatted code, an item ends at the indentation of its start.
        let indent = line.len() - line.trim_start().len();
        for line in lines.by_ref() {
            let depth = line.len() - line.trim_start().len();
            if depth == indent && (line.ends_with('}') || line.ends_with(';')) {
                break;
            }
        }
    }
    kept
}

/// The names in a `use` tree, each with its path.
fn flatten(tree: &[Token], prefix: &[String], public: bool, imports: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    let mut place = 0;
    while let Some(token) = tree.get(place) {
        match token {
            Token::Word(word) if word == "as" => {
                if let Some(Token::Word(name)) = tree.get(place + 1) {
                    imports.push(Import { name: name.clone(), path, public });
                }
                return;
            }
            Token::Word(word) if word == "self" && !path.is_empty() => {}
            Token::Word(word) => path.push(word.clone()),
            Token::Sign('*') => {
                imports.push(Import { name: "*".into(), path, public });
                return;
            }
            Token::Sign('{') => {
                let (mut depth, mut begin) = (0, place + 1);
                for (end, token) in tree.iter().enumerate().skip(place) {
                    match token {
                        Token::Sign('{') => depth += 1,
                        Token::Sign('}') => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 || (depth == 1 && *token == Token::Sign(',')) {
                        if end > begin {
                            flatten(&tree[begin..end], &path, public, imports);
                        }
                        begin = end + 1;
                    }
                }
                return;
            }
            _ => {}
        }
        place += 1;
    }
    let name = path.last().cloned().unwrap_or_default();
    imports.push(Import { name, path, public });
}

fn read_module(file: &str, source: &str) -> Module {
    let mut module = Module { file: file.into(), ..Module::default() };
    let tokens = tokens(&without_tests(source));
    let (mut place, mut depth) = (0, 0);
    // Brace depths at which inline modules start.
    let mut inner = Vec::new();
    // `super` in an inline module can mean the file itself.
    let outward = |inner: &[i32], path: &[String]| {
        let supers = path.iter().take(inner.len()).take_while(|name| *name == "super").count();
        if supers > 0 { [&["self".to_owned()], &path[supers..]].concat() } else { path.to_vec() }
    };
    while let Some(token) = tokens.get(place) {
        match token {
            Token::Word(word) if word == "mod" => {
                if let Some(Token::Word(name)) = tokens.get(place + 1) {
                    match tokens.get(place + 2) {
                        Some(Token::Sign(';')) => _ = module.children.insert(name.clone()),
                        _ => inner.push(depth),
                    }
                    place += 1;
                }
            }
            // `use<'a>` in a type captures lifetimes and imports nothing.
            Token::Word(word) if word == "use" && tokens.get(place + 1) != Some(&Token::Sign('<')) => {
                let end = (place..tokens.len()).find(|at| tokens[*at] == Token::Sign(';')).unwrap_or(tokens.len());
                let public = match place.checked_sub(1).map(|before| &tokens[before]) {
                    Some(Token::Word(word)) => word == "pub",
                    Some(Token::Sign(')')) => true,
                    _ => false,
                };
                let mut imports = Vec::new();
                flatten(&tokens[place + 1..end], &[], public, &mut imports);
                if inner.is_empty() {
                    module.imports.append(&mut imports);
                } else {
                    module.paths.extend(imports.iter().map(|import| outward(&inner, &import.path)));
                }
                place = end;
            }
            Token::Word(word) => {
                let mut path = vec![word.clone()];
                while let (Some(Token::Separator), Some(Token::Word(next))) =
                    (tokens.get(place + 1), tokens.get(place + 2))
                {
                    path.push(next.clone());
                    place += 2;
                }
                if path.len() > 1 {
                    module.paths.push(outward(&inner, &path));
                }
                module.words.insert(path.swap_remove(0));
            }
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => {
                depth -= 1;
                inner.retain(|opened| *opened < depth);
            }
            _ => {}
        }
        place += 1;
    }
    module
}

/// The modules of a crate by their paths.
struct Crate(BTreeMap<ModulePath, Module>);

impl Crate {
    /// Reads the modules in `mod` lines, from `lib.rs` on. `read` returns the text of a file, if the file exists.
    fn read(read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut modules = BTreeMap::new();
        let mut wanted = vec![ModulePath::new()];
        while let Some(path) = wanted.pop() {
            let stem = path.join("/");
            let files = if path.is_empty() {
                vec!["lib.rs".to_owned()]
            } else {
                vec![format!("{stem}.rs"), format!("{stem}/mod.rs")]
            };
            let found = files.iter().find_map(|file| Some((file, read(file)?)));
            let (file, source) = found.unwrap_or_else(|| panic!("no file for the module {path:?}"));
            let module = read_module(file, &source);
            wanted.extend(module.children.iter().map(|child| [&path[..], std::slice::from_ref(child)].concat()));
            modules.insert(path, module);
        }
        Self(modules)
    }

    /// The module whose file defines the name at `path`, which the module `from` contains, or `None` for other crates
    /// and the prelude.
    fn resolve(&self, from: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let begin = match first.as_str() {
            "crate" => ModulePath::new(),
            "self" => from.clone(),
            "super" => from.split_last()?.1.to_vec(),
            name => return self.member(from, name, rest, depth),
        };
        self.walk(begin, rest, depth)
    }

    fn walk(&self, module: ModulePath, rest: &[String], depth: usize) -> Option<ModulePath> {
        match rest.split_first() {
            None => Some(module),
            Some((name, rest)) if name == "super" => self.walk(module.split_last()?.1.to_vec(), rest, depth),
            Some((name, more)) => self.member(&module, name, more, depth).or(Some(module)),
        }
    }

    /// Resolves `rest` in a child or an import of `module`.
    fn member(&self, module: &ModulePath, name: &str, rest: &[String], depth: usize) -> Option<ModulePath> {
        let known = self.0.get(module)?;
        if known.children.contains(name) {
            return self.walk([&module[..], &[name.to_owned()]].concat(), rest, depth);
        }
        let import = known.imports.iter().find(|import| import.name == name)?;
        if depth == MAX_REEXPORTS || import.path.first().is_some_and(|first| first == name) {
            return None;
        }
        self.resolve(module, &[&import.path[..], rest].concat(), depth + 1)
    }

    /// The files that each file imports from.
    fn imports(&self) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
        let imported = |(from, module): (&ModulePath, &Module)| {
            let needed = |import: &&Import| !import.public || module.words.contains(&import.name);
            let used = module.imports.iter().filter(needed).map(|import| &import.path);
            let mut targets: BTreeSet<_> =
                used.chain(&module.paths).filter_map(|path| self.resolve(from, path, 0)).collect();
            targets.remove(from);
            (from.clone(), targets)
        };
        self.0.iter().filter(|(path, _)| !path.is_empty()).map(imported).collect()
    }

    fn file(&self, path: &ModulePath) -> &str {
        &self.0[path].file
    }
}

/// The layers in the numbered list of `lib.rs`: the position of each module, with 0 for the lowest.
fn layers(lib: &str) -> BTreeMap<String, usize> {
    let lines = lib.lines().filter_map(|line| line.strip_prefix("//! "));
    let numbered = lines.filter(|line| line.starts_with(|sign: char| sign.is_ascii_digit()));
    let names = |line: &str| {
        let before = line.split(':').next().unwrap_or_default();
        before.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    numbered.enumerate().flat_map(|(number, line)| names(line).into_iter().map(move |name| (name, number))).collect()
}

/// A depth-first search for cycles.
struct Search<'a> {
    imports: &'a BTreeMap<ModulePath, BTreeSet<ModulePath>>,
    open: Vec<&'a ModulePath>,
    done: BTreeSet<&'a ModulePath>,
    cycles: Vec<Vec<&'a ModulePath>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, at: &'a ModulePath) {
        if let Some(begin) = self.open.iter().position(|one| *one == at) {
            self.cycles.push(self.open[begin..].to_vec());
        } else if self.done.insert(at) {
            self.open.push(at);
            self.imports.get(at).into_iter().flatten().for_each(|next| self.visit(next));
            self.open.pop();
        }
    }
}

/// Cycles of imports, each as a list of files. If there are cycles, at least one is found.
fn cycles(imports: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<Vec<&ModulePath>> {
    let mut search = Search { imports, open: Vec::new(), done: BTreeSet::new(), cycles: Vec::new() };
    for at in imports.keys() {
        search.visit(at);
    }
    search.cycles
}

/// All problems of a crate's imports as text.
fn problems(read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let sources = Crate::read(read);
    let layers = layers(&read("lib.rs").unwrap_or_default());
    let imports = sources.imports();
    let mut problems = Vec::new();
    for path in sources.0.keys().filter(|path| path.len() == 1 && !layers.contains_key(&path[0])) {
        problems.push(format!("{} has no place in the list of layers in lib.rs", sources.file(path)));
    }
    for (from, targets) in &imports {
        for target in targets {
            let above = match (layers.get(&from[0]), target.first().and_then(|top| layers.get(top))) {
                (Some(from), Some(target)) => target > from,
                _ => target.is_empty(),
            };
            if above {
                problems.push(format!("{} imports from {}, which is above", sources.file(from), sources.file(target)));
            }
        }
    }
    for cycle in cycles(&imports) {
        let files: Vec<_> = cycle.iter().map(|path| sources.file(path)).collect();
        problems.push(format!("cycle: {}", files.join(" → ")));
    }
    problems
}

/// The problems of a crate with these files, given as (file, text).
fn problems_of(files: &[(&str, &str)]) -> Vec<String> {
    problems(&|wanted| files.iter().find(|(file, _)| *file == wanted).map(|(_, text)| (*text).to_owned()))
}

const LIB: &str = "//! 1. [`wire`]: below\n//! 2. [`table`]: above\nmod table;\nmod wire;\n";

fn source(file: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).ok()
}

#[test]
fn the_engine_imports_in_one_direction() {
    let problems = problems(&source);
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_file_of_the_engine_is_looked_at() {
    fn files(folder: &Path) -> usize {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let sources = Crate::read(&source);
    // Three files contain only unit tests: `flows/tests.rs`, `ledger/gates/testing.rs` and `wire/fragments/tests.rs`.
    assert_eq!(sources.0.len() + 3, files(&src));
}

#[test]
fn an_import_from_a_layer_above_is_found() {
    let wire = ("wire.rs", "use crate::table::Row;\n");
    let found = problems_of(&[("lib.rs", LIB), wire, ("table.rs", "pub struct Row;")]);
    assert_eq!(found, ["wire.rs imports from table.rs, which is above"]);
    let below = ("table.rs", "use crate::wire::{self, Segment};\n// crate::table\nfn f() { wire::read(\"super::x\") }");
    assert!(problems_of(&[("lib.rs", LIB), ("wire.rs", "pub struct Segment;"), below]).is_empty());
}

#[test]
fn a_path_in_the_code_is_an_import_too() {
    let wire = ("wire.rs", "fn f() -> u8 { crate::table::width() }\n");
    assert_eq!(problems_of(&[("lib.rs", LIB), wire, ("table.rs", "")]).len(), 1);
}

#[test]
fn a_module_without_a_layer_is_found() {
    let lib = "//! 1. [`wire`]: below\nmod table;\nmod wire;\n";
    let found = problems_of(&[("lib.rs", lib), ("wire.rs", ""), ("table.rs", "")]);
    assert_eq!(found, ["table.rs has no place in the list of layers in lib.rs"]);
}

#[test]
fn a_cycle_between_a_folder_and_its_file_is_found() {
    let folder = ("wire/mod.rs", "mod ip;\nuse ip::read;\npub const MOST: u8 = 4;\nfn f() { read() }");
    let child = ("wire/ip.rs", "use super::MOST;\npub fn read() {}");
    let found = problems_of(&[("lib.rs", LIB), folder, child, ("table.rs", "")]);
    assert_eq!(found, ["cycle: wire/mod.rs → wire/ip.rs"]);
}

#[test]
fn a_name_that_is_re_exported_counts_for_the_file_that_defines_it() {
    let folder = ("wire/mod.rs", "mod ip;\nmod udp;\npub use ip::{read, Segment};\npub use udp::Datagram;\n");
    let ip = ("wire/ip.rs", "pub struct Segment;\npub fn read() {}");
    let udp = ("wire/udp.rs", "use super::Segment;\npub struct Datagram(Segment);");
    assert!(problems_of(&[("lib.rs", LIB), folder, ip, udp, ("table.rs", "use crate::wire::Datagram;")]).is_empty());
    let back = ("wire/ip.rs", "use crate::wire::Datagram;\npub struct Segment;\npub fn read(_: Datagram) {}");
    let found = problems_of(&[("lib.rs", LIB), folder, back, udp, ("table.rs", "")]);
    assert_eq!(found, ["cycle: wire/ip.rs → wire/udp.rs"]);
}

#[test]
fn a_module_within_a_file_is_part_of_it() {
    let wire = "fn read() {}\nmod inner {\n    use super::read;\n    fn f() { super::read(); super::super::table::row() }\n}\n";
    let found = problems_of(&[("lib.rs", LIB), ("wire.rs", wire), ("table.rs", "")]);
    assert_eq!(found, ["wire.rs imports from table.rs, which is above"]);
}

#[test]
fn unit_tests_may_import_anything() {
    let wire = ("wire.rs", "#[cfg(test)]\nmod tests {\n    use crate::table::Row;\n}\npub struct Segment;\n");
    assert!(problems_of(&[("lib.rs", LIB), wire, ("table.rs", "")]).is_empty());
}

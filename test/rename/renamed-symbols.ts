// Renames symbols as an editor does: with the compiler's language service, wherever they are used.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { nodes } from "../fixtures/repository.ts";
import { marksUnder } from "../mistakes/marks.ts";
import type { Change } from "../mistakes/place.ts";
import type { Choice } from "./choice.ts";

export interface Renamed {
  /** `path: old name` of each. */
  readonly symbols: readonly string[];
  /** By the path of the file. */
  readonly changes: ReadonlyMap<string, readonly Change[]>;
}

export interface RenameOptions {
  readonly root: string;
  readonly choice: Choice;
  /** In nodes that known mistakes edit. */
  readonly marked: number;
  /** Anywhere in `src`. */
  readonly anywhere: number;
}

interface Candidate {
  /** Half of the symbols are names that other places use, half are local to a function. */
  readonly kind: "shared" | "local";
  readonly path: string;
  readonly name: string;
  readonly position: number;
}

/** A rule demands a unit in the name of every limit. */
const LIMITS = "src/core/limits.ts";

export function renameSymbols({ root, choice, marked, anywhere }: RenameOptions): Renamed {
  const service = openService(root);
  const program = service.getProgram();
  if (program === undefined) throw new Error("the program could not be read");
  const isPublic = publicNames(root);
  const candidatesIn = (within: ts.Node, source: ts.SourceFile): readonly Candidate[] =>
    [...nodes(within)].flatMap((node) => {
      const name = declaredName(node);
      const path = source.fileName.slice(root.length + 1);
      return name === undefined || isPublic.has(name.text) || name.text.length < 4 || path === LIMITS
        ? []
        : [{ kind: isLocal(node) ? "local" : "shared", path, name: name.text, position: name.getStart(source) }];
    });
  const files = program.getSourceFiles().filter((file) => file.fileName.startsWith(`${root}/src/`));
  const own = files.filter(({ fileName }) => !fileName.endsWith(".test.ts"));
  const inMarked = markedFunctions(root, program).flatMap(({ node, source }) => candidatesIn(node, source));
  const anyOf = own.flatMap((file) => candidatesIn(file, file));
  const chosen = [...choose(choice, inMarked, marked), ...choose(choice, anyOf, anywhere)];
  const changes = new Map<string, Change[]>();
  const symbols: string[] = [];
  for (const [index, { path, name, position }] of chosen.entries()) {
    const found = service.findRenameLocations(join(root, path), position, false, false, {
      providePrefixAndSuffixTextForRename: true,
    });
    if (found === undefined) continue;
    symbols.push(`${path}: ${name}`);
    const hash = name.startsWith("#") ? "#" : "";
    for (const { fileName, textSpan, prefixText = "", suffixText = "" } of found) {
      const file = fileName.slice(root.length + 1);
      const change = {
        start: textSpan.start,
        end: textSpan.start + textSpan.length,
        text: `${prefixText}${hash}renamed${index}${suffixText}`,
      };
      const known = changes.get(file) ?? [];
      // The same symbol may be chosen twice.
      if (!known.some(({ start }) => start === change.start)) changes.set(file, [...known, change]);
    }
  }
  return { symbols, changes };
}

function choose(choice: Choice, from: readonly Candidate[], count: number): readonly Candidate[] {
  const shared = Math.ceil(count / 2);
  return [
    ...choice.some(
      from.filter(({ kind }) => kind === "shared"),
      shared,
    ),
    ...choice.some(
      from.filter(({ kind }) => kind === "local"),
      count - shared,
    ),
  ];
}

function isLocal(node: ts.Node): boolean {
  if (!ts.isVariableDeclaration(node) && !ts.isParameter(node)) return false;
  return ts.isParameter(node) || !ts.isSourceFile(node.parent.parent.parent);
}

/**
 * What a rename cannot break outside of the compiler's sight: not properties of data, which are stored and sent, and
 * not public members of classes, which another type may ask for by their name.
 */
function declaredName(node: ts.Node): ts.Identifier | ts.PrivateIdentifier | undefined {
  const named =
    ts.isFunctionDeclaration(node) ||
    (ts.isMethodDeclaration(node) && ts.isPrivateIdentifier(node.name)) ||
    (ts.isPropertyDeclaration(node) && ts.isPrivateIdentifier(node.name)) ||
    ts.isVariableDeclaration(node) ||
    (ts.isParameter(node) && node.modifiers === undefined) ||
    ts.isClassDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isInterfaceDeclaration(node);
  if (!named || node.name === undefined) return undefined;
  return ts.isIdentifier(node.name) || ts.isPrivateIdentifier(node.name) ? node.name : undefined;
}

/** The functions and members around the marked nodes. */
function markedFunctions(root: string, program: ts.Program) {
  const marks = marksUnder(root, "src");
  return [...marks.names].flatMap((mark) => {
    const { path, node: marked } = marks.place(mark);
    const source = program.getSourceFile(join(root, path));
    if (source === undefined) return [];
    const start = marked.getStart();
    let found: ts.Node | undefined;
    for (const node of nodes(source)) {
      if (ts.isFunctionLike(node) && node.getStart(source) <= start && node.end >= marked.end) found = node;
    }
    return found === undefined ? [] : [{ node: found, source }];
  });
}

/** Names that users type, and methods of what they are given: checked in as a list of their own. */
function publicNames(root: string): ReadonlySet<string> {
  const surface = JSON.parse(readFileSync(join(root, "test/rules/surface.json"), "utf8")) as Record<
    string,
    readonly string[]
  >;
  return new Set(Object.values(surface).flatMap((names) => names.map((name) => name.replace(/^type /, ""))));
}

function openService(root: string): ts.LanguageService {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const extra = globSync("src/**/*.ts", { cwd: root }).map((file) => join(root, file));
  const names = [...new Set([...fileNames, ...extra])];
  return ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => names,
    getScriptVersion: () => "1",
    getScriptSnapshot: (name) => {
      const text = ts.sys.readFile(name);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => root,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  });
}

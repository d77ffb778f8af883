// Finds the places in the source that known mistakes edit. A mark is a comment:
//
//   if (continues) return [...before, nextTurn(run)]; // @fault next-turn-after-the-cancel
//
// It names the line it stands on or, alone on a line, the next one. The marked node is the outermost statement, class
// member, case, property or element that starts on that line. Several names are separated by commas; a mistake with
// several places tells them apart by a label (`@fault NAME:label`).
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { Place } from "./place.ts";

const MARK = /@fault ([a-z0-9-]+(?::[a-z0-9-]+)?(?:, [a-z0-9-]+(?::[a-z0-9-]+)?)*)\s*$/;

export interface MarkedPlaces {
  readonly root: string;
  /** All marks there are. */
  readonly names: ReadonlySet<string>;
  /** Throws unless the mark is there exactly once. */
  place(mark: string): Place;
  /** Of a file that has marks, by its path from the root. */
  text(path: string): string;
}

interface Line {
  readonly path: string;
  /** From 0. */
  readonly line: number;
}

export function marksUnder(root: string, folder: string): MarkedPlaces {
  const files = globSync(`${folder}/**/*.ts`, { cwd: root }).filter((path) => !path.endsWith(".test.ts"));
  return marksIn(root, new Map(files.map((path) => [path, readFileSync(join(root, path), "utf8")])));
}

/** The same for texts by their paths. */
export function marksIn(root: string, files: ReadonlyMap<string, string>): MarkedPlaces {
  const lines = new Map<string, Line[]>();
  for (const [path, text] of files) {
    if (!text.includes("@fault ")) continue;
    for (const [mark, line] of marksOf(text)) lines.set(mark, [...(lines.get(mark) ?? []), { path, line }]);
  }
  const parsed = new Map<string, ts.SourceFile>();
  const sourceOf = (path: string): ts.SourceFile => {
    const known = parsed.get(path) ?? ts.createSourceFile(path, files.get(path) ?? "", ts.ScriptTarget.Latest, true);
    parsed.set(path, known);
    return known;
  };
  return {
    root,
    names: new Set(lines.keys()),
    text: (path) => files.get(path) ?? "",
    place(mark) {
      const [at, ...others] = lines.get(mark) ?? [];
      if (at === undefined) throw new Error(`No line is marked with @fault ${mark}.`);
      if (others.length > 0) throw new Error(`${others.length + 1} lines are marked with @fault ${mark}, not one.`);
      const source = sourceOf(at.path);
      return new Place(source, unitOn(source, at.line));
    },
  };
}

/** Each mark with the line it names. */
function marksOf(text: string): readonly (readonly [mark: string, line: number])[] {
  const lines = text.split("\n");
  return lines.flatMap((content, line) => {
    const comment = content.indexOf("//");
    const names = comment === -1 ? undefined : MARK.exec(content)?.[1];
    if (names === undefined) return [];
    const named = content.slice(0, comment).trim() === "" ? nextCode(lines, line) : line;
    return names.split(", ").map((mark) => [mark, named] as const);
  });
}

function nextCode(lines: readonly string[], after: number): number {
  const found = lines.findIndex((content, line) => line > after && !/^\s*(\/\/.*)?$/.test(content));
  return found === -1 ? after : found;
}

function unitOn(source: ts.SourceFile, line: number): ts.Node {
  const found: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    const starts = source.getLineAndCharacterOfPosition(node.getStart()).line;
    if (starts > line || source.getLineAndCharacterOfPosition(node.end).line < line) return;
    if (starts === line && isUnit(node)) found.push(node);
    else node.forEachChild(visit);
  };
  source.forEachChild(visit);
  const [unit, ...others] = found;
  const where = `line ${line + 1} of ${source.fileName}`;
  if (unit === undefined) throw new Error(`No statement, member, case, property or element starts on ${where}.`);
  if (others.length > 0) throw new Error(`${found.length} nodes start on ${where}, so a mark there is ambiguous.`);
  return unit;
}

const isUnit = (node: ts.Node): boolean =>
  (ts.isStatement(node) && !ts.isBlock(node)) ||
  ts.isClassElement(node) ||
  ts.isCaseOrDefaultClause(node) ||
  ts.isObjectLiteralElement(node) ||
  (ts.isExpression(node) && ts.isArrayLiteralExpression(node.parent));

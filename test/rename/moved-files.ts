// Moves files into a new subfolder, and rewrites every relative path that leads to or from them.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import ts from "typescript";
import { nodes, type SourceText } from "../fixtures/repository.ts";

/** Where a file goes. */
export const movedPath = (path: string): string => posix.join(dirname(path), "moved", basename(path));

/** `files` are all files of the repository that may name another. */
export function moveFiles(root: string, moved: readonly string[], files: readonly SourceText[]): void {
  const places = new Map(moved.map((path) => [path, movedPath(path)]));
  for (const { path, text } of files) {
    const edited = rewritten(path, text, places);
    if (edited !== text) writeFileSync(join(root, path), edited);
  }
  for (const [from, to] of places) {
    mkdirSync(join(root, dirname(to)), { recursive: true });
    renameSync(join(root, from), join(root, to));
  }
}

/** The text of a file once it and what it names have moved. */
export function rewritten(path: string, text: string, places: ReadonlyMap<string, string>): string {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const here = dirname(places.get(path) ?? path);
  const literals = [...nodes(source)].filter(ts.isStringLiteralLike).filter(isPath);
  return literals.reduceRight((edited, literal) => {
    const target = posix.join(dirname(path), literal.text);
    const now = posix.relative(here, places.get(target) ?? target);
    const relative = now.startsWith(".") ? now : `./${now}`;
    if (relative === literal.text) return edited;
    return `${edited.slice(0, literal.getStart() + 1)}${relative}${edited.slice(literal.end - 1)}`;
  }, text);
}

/** Relative, and a module or a place: `import`, `export … from`, `import()`, `new URL("./x", import.meta.url)`. */
function isPath(literal: ts.StringLiteralLike): boolean {
  if (!/^\.{1,2}\//.test(literal.text)) return false;
  const { parent } = literal;
  return (
    ts.isImportDeclaration(parent) ||
    ts.isExportDeclaration(parent) ||
    (ts.isLiteralTypeNode(parent) && ts.isImportTypeNode(parent.parent)) ||
    (ts.isCallExpression(parent) && parent.expression.kind === ts.SyntaxKind.ImportKeyword) ||
    (ts.isNewExpression(parent) && parent.expression.getText() === "URL")
  );
}

/**
 * A file stays where it is if a path to it is composed at run time, or if it is an entry point of the package, which
 * `tsconfig.json` and `package.json` name.
 */
export function canMove(root: string, path: string): boolean {
  if (!/^src\/(?:[a-z-]+\/)+[a-z-]+\.ts$/.test(path) || path.startsWith("src/store/")) return false;
  if (readFileSync(join(root, "tsconfig.json"), "utf8").includes(`"./${path}"`)) return false;
  const text = readFileSync(join(root, path), "utf8");
  return !text.includes("import.meta.url") && !/-thread\.ts$|\/file-search\.ts$|\/main\.ts$/.test(path);
}

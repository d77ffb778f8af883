// The files of the house and their syntax, for the tests that keep it in order.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import ts from "typescript";

export const ROOT: string = resolve(import.meta.dirname, "..");

export interface SourceText {
  /** From the root of the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly specifier: string;
  /** The file it leads to, for relative ones. */
  readonly target: string | undefined;
  readonly typesOnly: boolean;
}

const GENERATED = new Set(["node_modules", "dist", ".git", "coverage", ".stryker-tmp", "reports"]);
const BINARY = /\.(png|jpg|gif|ico|woff2?|db|db-wal|db-shm|tgz)$/;

/** Every text file below a folder, generated ones excepted. */
export function filesUnder(folder: string): readonly SourceText[] {
  const files: SourceText[] = [];
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const path = folder === "." ? entry.name : `${folder}/${entry.name}`;
    if (GENERATED.has(entry.name) || BINARY.test(entry.name)) continue;
    if (entry.isDirectory()) files.push(...filesUnder(path));
    else if (entry.isFile()) files.push({ path, text: readFileSync(join(ROOT, path), "utf8") });
  }
  return files;
}

/** Every TypeScript file we wrote. */
export const sources = (): readonly SourceText[] => filesUnder(".").filter((file) => /\.m?ts$/.test(file.path));

/** Tests, and the suites that are made of tests. */
export const isTest = (path: string): boolean =>
  /\.test\.ts$/.test(path) || path.startsWith("test/") || /^src\/store\/contract[^/]*\.ts$/.test(path);

export function parse({ path, text }: SourceText): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);
}

/** Every node of a file, parents first. */
export function* nodes(root: ts.Node): Generator<ts.Node> {
  yield root;
  const children: ts.Node[] = [];
  root.forEachChild((child) => void children.push(child));
  for (const child of children) yield* nodes(child);
}

export function lineOf(node: ts.Node): number {
  return node.getSourceFile().getLineAndCharacterOfPosition(node.getStart()).line + 1;
}

/** Imports, re-exports and dynamic imports alike. */
export function importsOf(file: SourceText): readonly Import[] {
  const found: Import[] = [];
  for (const node of nodes(parse(file))) {
    const specifier = specifierOf(node);
    if (specifier === undefined) continue;
    const target = specifier.startsWith(".")
      ? relative(ROOT, resolve(ROOT, dirname(file.path), specifier)).replaceAll("\\", "/")
      : undefined;
    found.push({ specifier, target, typesOnly: importsTypesOnly(node) });
  }
  return found;
}

function specifierOf(node: ts.Node): string | undefined {
  if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined) {
    return ts.isStringLiteral(node.moduleSpecifier) ? node.moduleSpecifier.text : undefined;
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument) && ts.isStringLiteral(node.argument.literal)) {
    return node.argument.literal.text;
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [argument] = node.arguments;
    return argument !== undefined && ts.isStringLiteralLike(argument) ? argument.text : undefined;
  }
  return undefined;
}

function importsTypesOnly(node: ts.Node): boolean {
  if (ts.isImportTypeNode(node)) return true;
  if (ts.isExportDeclaration(node)) {
    if (node.isTypeOnly) return true;
    const clause = node.exportClause;
    return clause !== undefined && ts.isNamedExports(clause) && clause.elements.every((one) => one.isTypeOnly);
  }
  if (!ts.isImportDeclaration(node) || node.importClause === undefined) return false;
  const { name, namedBindings, phaseModifier } = node.importClause;
  if (phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  if (name !== undefined || namedBindings === undefined || !ts.isNamedImports(namedBindings)) return false;
  return namedBindings.elements.length > 0 && namedBindings.elements.every((one) => one.isTypeOnly);
}

// The ids of tests and groups of tests, read from the syntax trees: `test("title", { meta: { id: "…" } }, …)`. Nothing
// is run. An id stays when its test gets another title or moves to another file; the failure map refers to it.
import ts from "typescript";
import { lineOf, nodes, parse, type SourceText } from "../fixtures/repository.ts";

export interface TestWithId {
  /** Undefined: the id is an expression, which cannot be read without running it. */
  readonly id: string | undefined;
  /** Its own title last; before it the titles of the groups around it. */
  readonly titles: readonly string[];
  /** The words with which it and the groups around it are declared: `describe`, `runIf`, `test`, `each`. */
  readonly declared: readonly string[];
  /** From the root of the repository. */
  readonly file: string;
  readonly line: number;
}

/** The number of a guarantee, or an area in lower case; behind it two to seven words that name the behaviour. */
export const TEST_ID_FORM: RegExp = /^(G\d+|[a-z]+)\/[a-z0-9]+(-[a-z0-9]+){1,6}$/;

/** Every test and every group with an id, in the order of the files. */
export function testIdsIn(files: Iterable<SourceText>): readonly TestWithId[] {
  return [...files].flatMap((file) => {
    const found = known.get(file) ?? idsOf(file);
    known.set(file, found);
    return found;
  });
}

/** Where each id is: the path of its file. Of an id that is there twice, the first. */
export function filesByTestId(files: Iterable<SourceText>): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  for (const { id, file } of testIdsIn(files)) if (id !== undefined && !paths.has(id)) paths.set(id, file);
  return paths;
}

const known = new WeakMap<SourceText, readonly TestWithId[]>();

const DECLARING: ReadonlySet<string> = new Set(["test", "it", "describe"]);

function idsOf(file: SourceText): readonly TestWithId[] {
  // Most files have no ids, and parsing all of them takes seconds.
  if (!/\bmeta\b/.test(file.text)) return [];
  return [...nodes(parse(file))].flatMap((node) => {
    if (!isDeclaration(node)) return [];
    const id = idIn(optionsOf(node));
    if (id === undefined) return [];
    const around = declarationsAround(node);
    return [
      {
        id: ts.isStringLiteralLike(id) ? id.text : undefined,
        titles: around.map(titleOf),
        declared: around.flatMap((one) => [...wordsOf(one.expression), ...skippedBy(optionsOf(one))]),
        file: file.path,
        line: lineOf(node),
      },
    ];
  });
}

function isDeclaration(node: ts.Node): node is ts.CallExpression {
  return ts.isCallExpression(node) && DECLARING.has(wordsOf(node.expression)[0] ?? "");
}

/** The groups around a test from the outside in, and the test itself last. */
function declarationsAround(node: ts.Node): readonly ts.CallExpression[] {
  const found: ts.CallExpression[] = [];
  for (let above: ts.Node | undefined = node; above !== undefined; above = above.parent) {
    if (isDeclaration(above)) found.unshift(above);
  }
  return found;
}

/** `describe.runIf(here).each(rows)` as its words. */
function wordsOf(callee: ts.Expression): readonly string[] {
  if (ts.isIdentifier(callee)) return [callee.text];
  if (ts.isPropertyAccessExpression(callee)) return [...wordsOf(callee.expression), callee.name.text];
  return ts.isCallExpression(callee) ? wordsOf(callee.expression) : [];
}

/** The text of a literal; anything else as it is written. */
function titleOf({ arguments: [title] }: ts.CallExpression): string {
  if (title === undefined) return "";
  return ts.isStringLiteralLike(title) ? title.text : title.getText();
}

function optionsOf({ arguments: [, options] }: ts.CallExpression): ts.ObjectLiteralExpression | undefined {
  return options !== undefined && ts.isObjectLiteralExpression(options) ? options : undefined;
}

function idIn(options: ts.ObjectLiteralExpression | undefined): ts.Expression | undefined {
  const meta = propertyOf(options, "meta");
  return meta !== undefined && ts.isObjectLiteralExpression(meta) ? propertyOf(meta, "id") : undefined;
}

/** `{ skip: true }` as the word of `test.skip`, and `{ skip: here }` as that of `test.skipIf`. */
function skippedBy(options: ts.ObjectLiteralExpression | undefined): readonly string[] {
  return ["skip", "todo"].flatMap((word) => {
    const value = propertyOf(options, word);
    if (value === undefined || value.kind === ts.SyntaxKind.FalseKeyword) return [];
    return [value.kind === ts.SyntaxKind.TrueKeyword ? word : "skipIf"];
  });
}

function propertyOf(object: ts.ObjectLiteralExpression | undefined, key: string): ts.Expression | undefined {
  for (const property of object?.properties ?? []) {
    if (property.name === undefined || property.name.getText() !== key) continue;
    if (ts.isPropertyAssignment(property)) return property.initializer;
    if (ts.isShorthandPropertyAssignment(property)) return property.name;
  }
  return undefined;
}

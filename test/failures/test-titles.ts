// The titles of the tests in a file, read off its text: nothing is run, so a suite that takes an hour is as quick.
import ts from "typescript";
import { nodes, parse, type SourceText } from "../house.ts";

export interface Titled {
  readonly kind: "test" | "describe";
  /** Its own title last; before it those of what it stands in. */
  readonly path: readonly string[];
  /** How it is called: `test`, `test.each`, `describe.runIf`. */
  readonly called: readonly string[];
}

const NAMES: ReadonlyMap<string, Titled["kind"]> = new Map([
  ["test", "test"],
  ["it", "test"],
  ["describe", "describe"],
]);

/** Everything with a title, in the order of the file. */
export function titlesIn(file: SourceText): readonly Titled[] {
  const found = new Map<ts.Node, Titled>();
  for (const node of nodes(parse(file))) {
    if (!ts.isCallExpression(node)) continue;
    const words = wordsOf(node.expression);
    const kind = NAMES.get(words[0] ?? "");
    const title = titleOf(node.arguments[0]);
    if (kind === undefined || title === undefined) continue;
    const around = outer(node, found);
    found.set(node, { kind, path: [...(around?.path ?? []), title], called: [...(around?.called ?? []), ...words] });
  }
  return [...found.values()];
}

/** `describe.runIf(here).each(rows)` as its words. */
function wordsOf(callee: ts.Expression): readonly string[] {
  if (ts.isIdentifier(callee)) return [callee.text];
  if (ts.isPropertyAccessExpression(callee)) return [...wordsOf(callee.expression), callee.name.text];
  return ts.isCallExpression(callee) ? wordsOf(callee.expression) : [];
}

/** A template as it is written, with what is put into it. */
function titleOf(argument: ts.Expression | undefined): string | undefined {
  if (argument === undefined) return undefined;
  if (ts.isStringLiteralLike(argument)) return argument.text;
  return ts.isTemplateExpression(argument) ? argument.getText().slice(1, -1) : undefined;
}

function outer(node: ts.Node, found: ReadonlyMap<ts.Node, Titled>): Titled | undefined {
  for (let above = node.parent; above !== undefined; above = above.parent) {
    const titled = found.get(above);
    if (titled !== undefined) return titled;
  }
  return undefined;
}

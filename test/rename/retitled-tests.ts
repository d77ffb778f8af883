// Gives tests other titles.
import ts from "typescript";
import { nodes, parse, type SourceText } from "../fixtures/repository.ts";
import type { Change } from "../mistakes/place.ts";
import type { Choice } from "./choice.ts";

export interface Retitled {
  readonly titles: readonly string[];
  readonly changes: ReadonlyMap<string, readonly Change[]>;
}

/** Of tests that the failure map refers to, because those are the ones a title could matter to. */
export function retitleTests(files: readonly SourceText[], choice: Choice, count: number): Retitled {
  const titled = files.flatMap((file) =>
    file.text.includes("meta: { id:") ? [...nodes(parse(file))].flatMap((node) => titleOf(node, file)) : [],
  );
  const chosen = choice.some(titled, count);
  const changes = new Map<string, Change[]>();
  for (const [index, { path, literal }] of chosen.entries()) {
    const change = { start: literal.getStart(), end: literal.end, text: `"another title ${index}"` };
    changes.set(path, [...(changes.get(path) ?? []), change]);
  }
  return { titles: chosen.map(({ literal }) => literal.text), changes };
}

function titleOf(node: ts.Node, { path }: SourceText) {
  if (!ts.isCallExpression(node)) return [];
  const [title, options] = node.arguments;
  if (title === undefined || !ts.isStringLiteral(title) || options === undefined) return [];
  if (!ts.isObjectLiteralExpression(options) || !/\bmeta: \{ id: "/.test(options.getText())) return [];
  // A condition for leaving a test out has to be in its title.
  return /runIf|skipIf/.test(node.expression.getText()) ? [] : [{ path, literal: title }];
}

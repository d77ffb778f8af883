// The TypeScript blocks of the README and of docs/, type-checked against the sources as programs of a user.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { filesUnder, nodes, ROOT, type SourceText } from "../fixtures/repository.ts";

/**
 * A block of a page. Empty lines before its code keep the line numbers of the page. If its first line is a comment with
 * a file name (`// lib/belay.ts`), other snippets can import it from there.
 */
export interface Snippet extends SourceText {
  readonly page: string;
}

/** What a snippet may use without declaring it. Not a file, because it would be a part of the repository's program. */
const CONTEXT: Snippet = {
  ...{ page: "the context of snippets", path: "test/rules/snippet-context.ts" },
  text: `
import type { Agent, Belay, Session, Turn } from "agent-belay";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Stream } from "@agentclientprotocol/sdk";

declare global {
  const agent: Agent;
  const belay: Belay;
  const session: Session;
  const turn: Turn;
  const model: LanguageModelV4;
  const token: string;
  const stream: Stream;
}`,
};

/** Packages without types of their own. A declaration file, because in a module this would extend them. */
const UNTYPED: Snippet = {
  ...{ page: "the context of snippets", path: "test/rules/snippet-packages.d.ts" },
  text: 'declare module "express";',
};

const BLOCK = /^```ts\n([\s\S]*?)^```$/gm;

export function snippetsOf({ path, text }: SourceText): readonly Snippet[] {
  return [...text.matchAll(BLOCK)].map((match) => {
    const before = text.slice(0, match.index).split("\n").length;
    const named = /^\/\/ (\S+\.ts)\n/.exec(match[1] ?? "")?.[1];
    const file = named === undefined ? `${path}.${before + 1}.ts` : join(dirname(path), named);
    return { page: path, path: file, text: "\n".repeat(before) + match[1] };
  });
}

export const snippets = (): readonly Snippet[] =>
  filesUnder(".")
    .filter(({ path }) => path === "README.md" || /^docs\/.*\.md$/.test(path))
    .flatMap(snippetsOf);

/** `PAGE:LINE: MESSAGE` for each error. All snippets are modules of one program, so the sources are read once. */
export function typeErrors(given: readonly Snippet[]): readonly string[] {
  const texts = new Map([CONTEXT, UNTYPED, ...given].map((one) => [join(ROOT, one.path), one]));
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(ROOT, "tsconfig.json"), (file) => readFileSync(file, "utf8")).config,
    { ...ts.sys, readDirectory: () => [] },
    ROOT,
  );
  const program = ts.createProgram({
    rootNames: [...texts.keys()],
    // A page may show a constant that it does not use.
    options: { ...options, noUnusedLocals: false, moduleDetection: ts.ModuleDetectionKind.Force },
    host: hostWith(options, texts),
  });
  return [...texts].flatMap(([file, { page }]) => {
    const source = program.getSourceFile(file);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map((found) => {
      const { line = 0 } = source?.getLineAndCharacterOfPosition(found.start ?? 0) ?? {};
      return `${page}:${line + 1}: ${ts.flattenDiagnosticMessageText(found.messageText, " ")}`;
    });
  });
}

function hostWith(options: ts.CompilerOptions, texts: ReadonlyMap<string, SourceText>): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const { directoryExists, fileExists, readFile, getSourceFile } = host;
  const folders = new Set([...texts.keys()].map(dirname));
  host.directoryExists = (folder) => folders.has(folder) || directoryExists?.(folder) === true;
  host.fileExists = (file) => texts.has(file) || fileExists(file);
  host.readFile = (file) => texts.get(file)?.text ?? readFile(file);
  host.getSourceFile = (file, target, ...rest) => {
    const text = texts.get(file)?.text;
    return text === undefined
      ? getSourceFile(file, target, ...rest)
      : ts.createSourceFile(file, text, target, true, ts.ScriptKind.TS);
  };
  return host;
}

/** What an outcome is read by: `await`, and the list or the function that Promise.all() gets. */
const AWAITING = [ts.isAwaitExpression, ts.isArrayLiteralExpression, ts.isArrowFunction];

/** A program that prompts and never reads how the run ended hides failures: deltas and `text()` do not report them. */
export function ignoresTheEnd({ path, text }: SourceText): boolean {
  let prompts = false;
  for (const node of nodes(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS))) {
    if (ts.isStringLiteral(node) && node.text === "run.settled") return false;
    if (!ts.isPropertyAccessExpression(node)) continue;
    const isCalled = ts.isCallExpression(node.parent) && node.parent.expression === node;
    const isAwaited = AWAITING.some((is) => is(node.parent));
    if ((node.name.text === "result" && isCalled) || (node.name.text === "outcome" && isAwaited)) return false;
    prompts ||= node.name.text === "prompt" && isCalled;
  }
  return prompts;
}

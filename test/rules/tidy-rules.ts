// What a tidy file looks like, as functions that find what is not.
import ts from "typescript";
import { isTest, lineOf, nodes, parse, type SourceText } from "../fixtures/repository.ts";

const FILE_LINES_MAX = 400;
const TEST_FILE_LINES_MAX = 600;
const FUNCTION_LINES_MAX = 70;
const LINE_CHARS_MAX = 120;
/** A timer longer than this in a test is a wait for time instead of for an event. */
const SLEEP_MS_MIN = 10;

export type Rule = (file: SourceText) => readonly string[];

/** For every TypeScript file we wrote. */
export const rules: Readonly<Record<string, Rule>> = {
  fileSize,
  functionSize,
  lineWidth,
  noDefaultExport,
  noAny,
  noUnfinishedBusiness,
  fileName,
  purposeFirst,
  bannedWords,
  noFocusedTests,
  noSleeps,
  noNumberedParameters,
};

function fileSize({ path, text }: SourceText): readonly string[] {
  const lines = text.trimEnd().split("\n").length;
  const max = isTest(path) ? TEST_FILE_LINES_MAX : FILE_LINES_MAX;
  return lines > max ? [`${path}: ${lines} lines, ${max} is the limit`] : [];
}

function functionSize(file: SourceText): readonly string[] {
  const findings: string[] = [];
  for (const node of nodes(parse(file))) {
    if (!ts.isFunctionLike(node) || !("body" in node) || node.body === undefined) continue;
    if (linesOf(node) <= FUNCTION_LINES_MAX || isSuite(node)) continue;
    const lines = linesOf(node) - linesOfTestsIn(node);
    if (lines > FUNCTION_LINES_MAX) {
      findings.push(`${at(file, node)}: a function of ${lines} lines, ${FUNCTION_LINES_MAX} is the limit`);
    }
  }
  return findings;
}

function linesOf(node: ts.Node): number {
  const source = node.getSourceFile();
  const end = source.getLineAndCharacterOfPosition(node.getEnd()).line;
  return end - source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
}

/** Tests inside a suite are functions of their own; the suite is only their list. */
function linesOfTestsIn(node: ts.Node): number {
  let lines = 0;
  node.forEachChild((child) => {
    lines += isTestCall(child) ? linesOf(child) : linesOfTestsIn(child);
  });
  return lines;
}

const isSuite = (node: ts.Node): boolean => isTestCall(node.parent) && calleeName(node.parent) === "describe";

const isTestCall = (node: ts.Node): boolean => ["describe", "test", "it"].includes(calleeName(node) ?? "");

/** `test` of test(…), test.each(…)(…) and test.skipIf(…)(…). */
function calleeName(node: ts.Node): string | undefined {
  let callee: ts.Node = node;
  if (!ts.isCallExpression(callee)) return undefined;
  while (ts.isCallExpression(callee) || ts.isPropertyAccessExpression(callee)) callee = callee.expression;
  return ts.isIdentifier(callee) ? callee.text : undefined;
}

function lineWidth({ path, text }: SourceText): readonly string[] {
  return text
    .split("\n")
    .flatMap((line, index) =>
      line.length > LINE_CHARS_MAX ? [`${path}:${index + 1}: ${line.length} characters`] : [],
    );
}

function noDefaultExport(file: SourceText): readonly string[] {
  // The one file whose reader asks for it.
  if (file.path === "vitest.config.ts") return [];
  const findings: string[] = [];
  for (const node of nodes(parse(file))) {
    const modifiers = ts.canHaveModifiers(node) ? (ts.getModifiers(node) ?? []) : [];
    const marked = modifiers.some((one) => one.kind === ts.SyntaxKind.DefaultKeyword);
    const renamed = ts.isExportSpecifier(node) && node.name.text === "default";
    if (ts.isExportAssignment(node) || marked || renamed) findings.push(`${at(file, node)}: a default export`);
  }
  return findings;
}

function noAny(file: SourceText): readonly string[] {
  return [...nodes(parse(file))]
    .filter((node) => node.kind === ts.SyntaxKind.AnyKeyword)
    .map((node) => `${at(file, node)}: any`);
}

// Said in halves, so that this file does not find itself.
const UNFINISHED = new RegExp(`\\b(${["TO", "FIX"].map((half, index) => half + ["DO", "ME"][index]).join("|")})\\b`);

function noUnfinishedBusiness({ path, text }: SourceText): readonly string[] {
  return text
    .split("\n")
    .flatMap((line, index) => (UNFINISHED.test(line) ? [`${path}:${index + 1}: unfinished business`] : []));
}

const FORBIDDEN_NAMES = new Set(["utils", "util", "helpers", "helper", "common", "shared", "types", "misc"]);

function fileName({ path }: SourceText): readonly string[] {
  const name =
    path
      .split("/")
      .at(-1)
      ?.replace(/((\.int|\.slow)?\.test|\.config|\.d)?\.ts$/, "") ?? "";
  if (FORBIDDEN_NAMES.has(name)) return [`${path}: a file is one noun, and ${name} is none`];
  return /^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) ? [] : [`${path}: file names are kebab-case`];
}

function purposeFirst({ path, text }: SourceText): readonly string[] {
  // A test is the second half of the file it stands beside, and that one has said it.
  if (/\.test\.ts$/.test(path)) return [];
  const begun = text.replace(/^#!.*\n/, "");
  return /^(\/\/ \S|\/\*)/.test(begun) ? [] : [`${path}: begins without saying what it is for`];
}

/** Second names for what the glossary calls a session, a run or a turn, and other spellings of cancelled. */
const BANNED_WORDS = new Set([
  ...["thread", "chat", "conversation", "job", "jobs", "execution", "iteration"],
  ...["uncancellable", "canceled", "canceling", "cancelation"],
]);

/** Where such a word has its usual meaning. */
const MEANT: readonly { readonly word: string; readonly in: string; readonly because: string }[] = [
  { word: "thread", in: "src/store/sqlite/", because: "a thread of the platform, not a session" },
];

function bannedWords(file: SourceText): readonly string[] {
  if (isTest(file.path)) return [];
  const meant = new Set(MEANT.filter((one) => file.path.startsWith(one.in)).map((one) => one.word));
  return exportedNames(parse(file)).flatMap(({ name, node }) => {
    const word = wordsOf(name).find((one) => BANNED_WORDS.has(one) && !meant.has(one));
    return word === undefined ? [] : [`${at(file, node)}: ${name} contains ${word}; see the glossary`];
  });
}

function exportedNames(source: ts.SourceFile): readonly { readonly name: string; readonly node: ts.Node }[] {
  const names: { name: string; node: ts.Node }[] = [];
  for (const node of source.statements) {
    const modifiers = ts.canHaveModifiers(node) ? (ts.getModifiers(node) ?? []) : [];
    if (ts.isExportDeclaration(node) && node.exportClause !== undefined && ts.isNamedExports(node.exportClause)) {
      names.push(...node.exportClause.elements.map((one) => ({ name: one.name.text, node: one })));
    }
    if (!modifiers.some((one) => one.kind === ts.SyntaxKind.ExportKeyword)) continue;
    for (const one of ts.isVariableStatement(node) ? node.declarationList.declarations : [node]) {
      const name = ts.getNameOfDeclaration(one as ts.Declaration);
      if (name !== undefined && ts.isIdentifier(name)) names.push({ name: name.text, node: one });
    }
  }
  return names;
}

const wordsOf = (name: string): readonly string[] =>
  name.split(/_|(?<=[a-z0-9])(?=[A-Z])/).map((word) => word.toLowerCase());

function noFocusedTests(file: SourceText): readonly string[] {
  if (!isTest(file.path)) return [];
  const findings: string[] = [];
  for (const node of nodes(parse(file))) {
    if (!ts.isPropertyAccessExpression(node) || !["only", "skip", "todo"].includes(node.name.text)) continue;
    let root: ts.Node = node.expression;
    while (ts.isPropertyAccessExpression(root) || ts.isCallExpression(root)) root = root.expression;
    if (ts.isIdentifier(root) && ["describe", "test", "it", "suite"].includes(root.text)) {
      findings.push(`${at(file, node)}: .${node.name.text}`);
    }
  }
  return findings;
}

function noSleeps(file: SourceText): readonly string[] {
  if (!isTest(file.path)) return [];
  const findings: string[] = [];
  for (const node of nodes(parse(file))) {
    if (!ts.isCallExpression(node)) continue;
    const { expression } = node;
    const name = ts.isPropertyAccessExpression(expression) ? expression.name.text : expression.getText();
    const waits = node.arguments.some((one) => ts.isNumericLiteral(one) && Number(one.text) >= SLEEP_MS_MIN);
    if (name === "sleep" || (name === "setTimeout" && waits)) findings.push(`${at(file, node)}: waits for time`);
  }
  return findings;
}

/** Node before 22.20 and 24.7 cannot bind them: `column index out of range`. */
function noNumberedParameters({ path, text }: SourceText): readonly string[] {
  if (!path.startsWith("src/store/sqlite/")) return [];
  return text
    .split("\n")
    .flatMap((line, index) => (/\?[1-9]/.test(line) ? [`${path}:${index + 1}: a numbered SQL parameter`] : []));
}

// Said in pieces, so that this file does not find itself.
const MACHINE = new RegExp(
  [
    String.raw`(?<![\w.~-])/(work|root|mnt|Users)/[\w.-]`,
    String.raw`(?<![\w.~-])/home/(?!user\b)[\w.-]`,
    String.raw`\b[A-Z]:\\Users\\`,
    ["registry", String.raw`\.(npmjs|yarnpkg)\.`].join(""),
    ["npm", String.raw`\.pkg\.github\.com`].join(""),
    ["artifact", "ory|nexus", "/repository"].join(""),
  ].join("|"),
);

/** For every text file of the repository: nothing in it depends on the machine it was written on. */
export function machinePaths({ path, text }: SourceText): readonly string[] {
  return text.split("\n").flatMap((line, index) => {
    const found = MACHINE.exec(line)?.[0];
    return found === undefined ? [] : [`${path}:${index + 1}: ${found}`];
  });
}

const at = (file: SourceText, node: ts.Node): string => `${file.path}:${lineOf(node)}`;

// Every rule holds in the whole repository, and finds what breaks it.
import { describe, expect, test } from "vitest";
import { filesUnder, sources } from "../fixtures/repository.ts";
import { machinePaths, rules } from "./tidy-rules.ts";

const files = sources();

test.each(Object.entries(rules))("%s holds everywhere", (_, rule) => {
  expect(files.flatMap(rule)).toEqual([]);
});

test("nothing names the machine it was written on", () => {
  expect(filesUnder(".").flatMap(machinePaths)).toEqual([]);
});

describe("each rule bites", () => {
  const lines = (count: number) => "x();\n".repeat(count);
  const word = (...parts: readonly string[]) => parts.join("");

  const bad: readonly (readonly [rule: string, path: string, text: string])[] = [
    ["fileSize", "src/core/a.ts", lines(401)],
    ["fileSize", "src/core/a.test.ts", lines(601)],
    ["functionSize", "src/core/a.ts", `function a() {\n${lines(69)}}`],
    ["functionSize", "src/core/a.ts", `const a = () => {\n${lines(69)}};`],
    ["functionSize", "src/core/a.ts", `class A { a() {\n${lines(69)}} }`],
    ["functionSize", "src/core/a.test.ts", `test("a", () => {\n${lines(69)}});`],
    ["lineWidth", "src/core/a.ts", "x".repeat(121)],
    ["noDefaultExport", "src/core/a.ts", "export default function a() {}"],
    ["noDefaultExport", "src/core/a.ts", "export default 1;"],
    ["noDefaultExport", "src/core/a.ts", "export { a as default };"],
    ["noAny", "src/core/a.ts", "const a: any = 1;"],
    ["noAny", "src/core/a.ts", "const a = b as readonly any[];"],
    ["noUnfinishedBusiness", "src/core/a.ts", word("// TO", "DO: later")],
    ["noUnfinishedBusiness", "src/core/a.ts", word("// FIX", "ME")],
    ["fileName", "src/core/utils.ts", ""],
    ["fileName", "src/engine/helpers.test.ts", ""],
    ["fileName", "src/core/types.ts", ""],
    ["fileName", "src/core/liveWork.ts", ""],
    ["purposeFirst", "src/core/a.ts", 'import "./b.ts";\n// Late.'],
    ["purposeFirst", "src/core/a.ts", "\n// A blank line first."],
    ["bannedWords", "src/core/a.ts", "export const jobQueue = 1;"],
    ["bannedWords", "src/core/a.ts", "export interface ChatThread {}"],
    ["bannedWords", "src/core/a.ts", "const a = 1;\nexport { a as THREAD_MAX };"],
    ["bannedWords", "src/core/a.ts", "export function canceled() {}"],
    ["noFocusedTests", "src/core/a.test.ts", `test.${"only"}("a", () => {});`],
    ["noFocusedTests", "src/core/a.test.ts", `describe.${"skip"}("a", () => {});`],
    ["noFocusedTests", "src/core/a.test.ts", `it.concurrent.${"todo"}("a");`],
    ["noFocusedTests", "src/store/contract/contract.ts", 'test.skip.each([])("a", () => {});'],
    ["noNumberedParameters", "src/store/sqlite/a.ts", 'sql("DELETE FROM event WHERE seq < ?1");'],
    ["noSleeps", "src/core/a.test.ts", "await sleep(1);"],
    ["noSleeps", "src/core/a.test.ts", `setTimeout(${"resolve"}, 10);`],
    ["noSleeps", "test/a.test.ts", "await timers.setTimeout(100);"],
  ];

  test.each(bad)("%s finds it in %s", (rule, path, text) => {
    expect(rules[rule]?.({ path, text })).toHaveLength(1);
  });

  test("every rule has something to bite", () => {
    expect(new Set(bad.map(([rule]) => rule))).toEqual(new Set(Object.keys(rules)));
  });

  const good: typeof bad = [
    ["fileSize", "src/core/a.ts", lines(400)],
    ["fileSize", "src/core/a.test.ts", lines(600)],
    ["functionSize", "src/core/a.ts", `function a() {\n${lines(68)}}`],
    ["functionSize", "src/core/a.test.ts", `describe("a", () => {\n${'test("b", () => {\nx();\n});\n'.repeat(40)}});`],
    [
      "functionSize",
      "src/store/contract/contract.ts",
      `function a() {\n${'it.each([])("b", () => {\nx();\n});\n'.repeat(40)}}`,
    ],
    ["noDefaultExport", "vitest.config.ts", "export default {};"],
    ["purposeFirst", "bin/a.ts", "#!/usr/bin/env node\n// What it is for."],
    ["bannedWords", "src/core/a.ts", "const job = 1;\nexport const threadless = 1;"],
    ["noFocusedTests", "src/core/a.test.ts", `test.skipIf(true)("a", () => {});\nlist.${"only"}(1);`],
    ["noFocusedTests", "src/core/a.ts", `test.${"only"}();`],
    ["bannedWords", "src/store/sqlite/a.ts", "export class Thread {}"],
    ["bannedWords", "src/core/a.ts", "export class Mutex {}\nexport const orphanedProcesses = 1;"],
    ["bannedWords", "src/core/a.ts", "export function middleware() {}\nexport const zombieChunks = 1;"],
    ["purposeFirst", "src/core/a.test.ts", 'import "./a.ts";'],
    ["noSleeps", "src/core/a.test.ts", "setTimeout(resolve, 0);\nclock.after(1000, go);"],
  ];

  test.each(good)("%s lets pass what is right in %s", (rule, path, text) => {
    expect(rules[rule]?.({ path, text })).toEqual([]);
  });

  test.each([
    word("see /", "work/main/src"),
    word('"/', "root/.npmrc"),
    word("(/", "home/ann/belay"),
    word("/", "Users/ann/belay"),
    word("C:", "\\Users\\ann"),
    word("https://registry", ".npmjs.org/node"),
  ])("machine: %s", (text) => {
    expect(machinePaths({ path: "README.md", text })).toHaveLength(1);
  });

  test.each(["src/work/a.ts", "https://example.com/home/x", "./root/a", "~/work/x"])("no machine: %s", (text) => {
    expect(machinePaths({ path: "README.md", text })).toEqual([]);
  });
});

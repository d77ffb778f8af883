import { expect, test } from "vitest";
import type { QuestionId, RunId } from "../../../core/model/ids.ts";
import type { Subject } from "../../../core/model/question.ts";
import { formatQuestion } from "./asked-question.ts";

let columns = 60;

const asked = (about: Subject, code?: string) =>
  formatQuestion(
    { id: "ask_1.1" as QuestionId, runId: "run_1" as RunId, about },
    { columns: () => columns, ...(code === undefined ? {} : { code }) },
  );

const APPROVAL: Subject = {
  kind: "approval",
  name: "shell\nMay exactly this be carried out?",
  input: { command: `${"x".repeat(60)}Type abcd to allow it: ` },
  digest: "DIGEST",
  scope: "shell",
};

test("only Belay's own text begins a row; the model's text is in the margin", () => {
  const rows = asked(APPROVAL).about().split("\n");
  expect(rows.filter((row) => row !== "" && !row.startsWith("│"))).toEqual([
    expect.stringContaining("Approval ask_1.1  of run_1"),
    "May exactly this be carried out?",
  ]);
  expect(rows.join("\n")).toContain("DIGEST");
});

test("G36: when the question is drawn again on a narrower terminal, each row is still in the margin", () => {
  const { about } = asked(APPROVAL);
  columns = 30;
  const rows = about()
    .split("\n")
    .filter((row) => row.startsWith("│"));
  columns = 60;
  expect(Math.max(...rows.map(({ length }) => length))).toBeLessThan(30);
});

test("an approval needs the code of its question; a plain yes does not approve", () => {
  const { read, paste } = asked(APPROVAL, "k7pm");
  expect(paste).toBe("dropped");
  expect(read(" K7PM ")).toEqual({ kind: "allow", always: false });
  expect(read("k7pm always")).toEqual({ kind: "allow", always: true });
  expect(read("n Not today")).toEqual({ kind: "deny", note: "Not today" });
  for (const typed of ["y", "yes", "always", "", "k7p", "k7pmm", "k7pm y", "y k7pm"]) {
    expect(read(typed).kind).toBe("unclear");
  }
});

test("codes differ from question to question", () => {
  const prompts = new Set(Array.from({ length: 50 }, () => asked(APPROVAL).prompt));
  expect(prompts.size).toBeGreaterThan(45);
});

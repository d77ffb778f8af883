// The file tools in a session with its own directory: they stay in it as they stay in the workspace.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { noProcesses } from "../../../../test/fixtures/no-processes.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { LiveCall } from "../../../ports/agent.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { fileTools } from "./file-tools.ts";
import type { FileToolName } from "./file-tools-options.ts";

let base = "";
let workspace = "";
let project = "";
let hidden = "";

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "belay-session-files-")));
  workspace = join(base, "workspace");
  project = join(base, "project");
  hidden = join(project, "state");
  for (const one of [workspace, project, hidden]) mkdirSync(one);
  writeFileSync(join(workspace, "a.txt"), "of the workspace\n");
  writeFileSync(join(project, "a.txt"), "of the project\n");
  writeFileSync(join(hidden, "token"), "secret\n");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function use(name: FileToolName, input: Json, cwd: string | undefined = project): Promise<unknown> {
  const call: LiveCall = {
    ...({ sessionId: "ses_1", runId: "run_1", callId: "call_1.1", name, input, cwd, mode: undefined } as const),
    ...{ clock: manualClock(), processes: noProcesses, stopping: false, signal: new AbortController().signal },
    ...{ partial: () => undefined, progress: () => undefined, changed: () => undefined },
    ask: () => Promise.reject(new Error("no answer")),
  };
  return fileTools({ workspace, hidden: [hidden] })[name].execute(call);
}

test("they work in the session's directory, and without one in the workspace", async () => {
  expect(await use("read_file", { path: "a.txt" })).toContain("of the project");
  expect(await use("read_file", { path: join(project, "a.txt") })).toContain("of the project");
  expect(await use("list_files", {})).toContain("a.txt");
  for (const regex of [false, true]) {
    expect(await use("search_files", { query: "of the", regex })).toContain("a.txt:1: of the project");
  }
  await use("write_file", { path: "new/b.txt", text: "made\n" });
  expect(readFileSync(join(project, "new", "b.txt"), "utf8")).toBe("made\n");
  await use("edit_file", { path: "a.txt", old: "project", new: "house" });
  expect(readFileSync(join(project, "a.txt"), "utf8")).toBe("of the house\n");
  expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("of the workspace\n");
  const call = fileTools({ workspace }).read_file.execute;
  expect(await call(without("a.txt"))).toContain("of the workspace");
});

const without = (path: string): LiveCall => ({
  ...({ sessionId: "ses_2", runId: "run_1", callId: "call_1.1", name: "read_file" } as const),
  ...{ cwd: undefined, mode: undefined },
  ...{
    clock: manualClock(),
    processes: noProcesses,
    stopping: false,
    signal: new AbortController().signal,
    input: { path },
  },
  ...{ partial: () => undefined, progress: () => undefined, changed: () => undefined },
  ask: () => Promise.reject(new Error("no answer")),
});

test("G35: neither `..` nor a link reaches outside, nor the workspace, nor a hidden path", async () => {
  symlinkSync(workspace, join(project, "out"));
  const ways = ["../workspace/a.txt", join(workspace, "a.txt"), "out/a.txt", "state/token", join(hidden, "token")];
  for (const path of ways) {
    await expect(use("read_file", { path })).rejects.toMatchObject({ code: "invalid" });
    await expect(use("write_file", { path, text: "x" })).rejects.toMatchObject({ code: "invalid" });
  }
  expect(await use("list_files", {})).not.toContain("state");
  expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("of the workspace\n");
  expect(existsSync(join(hidden, "x"))).toBe(false);
});

test("G35: a link that replaced the directory is not followed", async () => {
  rmSync(project, { recursive: true });
  symlinkSync(workspace, project);
  const asks = [
    use("read_file", { path: "a.txt" }),
    use("list_files", {}),
    use("search_files", { query: "of", regex: true }),
    use("write_file", { path: "new.txt", text: "x" }),
  ];
  // Awaited together, so that no rejection is unhandled.
  await Promise.all(asks.map((one) => expect(one).rejects.toThrow("was replaced by a link")));
  expect(existsSync(join(workspace, "new.txt"))).toBe(false);
});

import { execFileSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { noProcesses } from "../../../../test/fixtures/no-processes.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { LiveCall } from "../../../ports/agent.ts";
import { type ManualClock, manualClock } from "../../../testing/manual-clock.ts";
import { UNTRUSTED_STOP_MS } from "../untrusted.ts";
import { FILE_EDIT_BYTES_MAX, FILE_SCAN_BYTES_MAX, LIST_RESULT_ENTRIES_MAX, SEARCH_MS } from "./file-limits.ts";
import { holdDirectory, locate, openFile } from "./file-path.ts";
import { fileTools } from "./file-tools.ts";
import type { FileToolName, FileToolsOptions } from "./file-tools-options.ts";

let base = "";
let workspace = "";
let outside = "";

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "belay-files-")));
  workspace = join(base, "workspace");
  outside = join(base, "workspace-2");
  mkdirSync(workspace);
  mkdirSync(outside);
  writeFileSync(join(outside, "secret.txt"), "secret\n");
});

afterEach(() => rmSync(base, { recursive: true, force: true }));

class Call implements LiveCall {
  readonly runId = "run_1";
  readonly callId = "call_1.1";
  readonly name = "file";
  readonly input = {};
  readonly processes = noProcesses;
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  readonly stopping = false;
  readonly partials: Json[] = [];
  readonly changes: string[] = [];
  readonly clock: ManualClock = manualClock();
  readonly sessionId: SessionId;
  readonly cwd: string | undefined;
  readonly mode = undefined;

  constructor(sessionId: SessionId = "ses_1", cwd?: string) {
    this.sessionId = sessionId;
    this.cwd = cwd;
  }
  partial(value: Json): void {
    this.partials.push(value);
  }
  progress(): void {}
  changed(what: string): void {
    this.changes.push(what);
  }
  ask(): Promise<never> {
    return Promise.reject(new Error("no answer"));
  }
}

type Use = (name: FileToolName, input: Json, call?: Call) => Promise<string>;

function tools(options: FileToolsOptions = {}): Use {
  const made = fileTools({ workspace, ...options });
  return async (name, input, call = new Call()) => {
    const asked: LiveCall = Object.assign(Object.create(call), { input, name });
    // The private state of the class, found on the object itself.
    return String(await made[name].execute(asked));
  };
}

const put = (name: string, text: string | Uint8Array): void => {
  mkdirSync(dirname(join(workspace, name)), { recursive: true });
  writeFileSync(join(workspace, name), text);
};
const at = (name: string): string => readFileSync(join(workspace, name), "utf8");

describe("read_file", () => {
  test("returns the lines with their numbers", async () => {
    put("a.txt", "one\ntwo\nthree\n");
    expect(await tools()("read_file", { path: "a.txt" })).toBe("a.txt, lines 1 to 3 of 3.\n1\tone\n2\ttwo\n3\tthree");
  });

  test("returns a range of lines, or says that it is empty", async () => {
    put("a.txt", "one\ntwo\nthree");
    const use = tools();
    expect(await use("read_file", { path: "a.txt", fromLine: 2, toLine: 2 })).toBe("a.txt, lines 2 to 2 of 3.\n2\ttwo");
    expect(await use("read_file", { path: "a.txt", fromLine: 9 })).toBe("a.txt has 3 lines, and none from 9 on.");
    await expect(use("read_file", { path: "a.txt", fromLine: 3, toLine: 2 })).rejects.toThrow("before");
    put("empty", "");
    expect(await use("read_file", { path: "empty" })).toBe("empty is empty.");
  });

  test("says where to continue when the result is full, by bytes and by lines", async () => {
    put("a.txt", `${"x".repeat(99)}\n`.repeat(100));
    const told = await tools({ bytesMax: 1_024 })("read_file", { path: "a.txt" });
    expect(told).toContain("lines 1 to 10 of 100.");
    expect(told).toContain("continue with fromLine 11");
    put("b.txt", "\n".repeat(5_000));
    expect(await tools()("read_file", { path: "b.txt" })).toContain("continue with fromLine 2001");
  });

  test("cuts a line of many megabytes", async () => {
    put("long.txt", `${"y".repeat(10_000_000)}\nlast\n`);
    const told = await tools()("read_file", { path: "long.txt" });
    expect(told).toContain("… (9998000 more characters)");
    expect(told.endsWith("2\tlast")).toBe(true);
    expect(told.length).toBeLessThan(3_000);
  });

  test("reads the beginning of a file beyond the scan limit, and says that there is more", async () => {
    // A sparse file takes no disk space; only the beginning decides whether it is text.
    put("huge.txt", `${"first line\n".repeat(2_000)}`);
    truncateSync(join(workspace, "huge.txt"), FILE_SCAN_BYTES_MAX * 2);
    const told = await tools()("read_file", { path: "huge.txt", toLine: 1 });
    expect(told).toContain("lines 1 to 1 of more than 2001");
  });

  test("says that a file is not text, or contains invalid UTF-8", async () => {
    put("a.png", Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]));
    expect(await tools()("read_file", { path: "a.png" })).toContain('"a.png" is not text: 7 bytes');
    put("latin.txt", Uint8Array.from([0x67, 0x72, 0xfc, 0x6e, 0x0a]));
    const told = await tools()("read_file", { path: "latin.txt" });
    expect(told).toContain("not valid UTF-8");
    expect(told).toContain("1\tgr\uFFFDn");
  });

  test("suggests a similar name for a missing file", async () => {
    put("src/reader.ts", "");
    await expect(tools()("read_file", { path: "src/raeder.ts" })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining('Did you mean "reader.ts"?'),
    });
  });

  test("a stop takes effect before the next block", async () => {
    put("a.txt", "x");
    const call = new Call();
    call.controller.abort(new Error("stopped"));
    await expect(tools()("read_file", { path: "a.txt" }, call)).rejects.toThrow("stopped");
  });
});

describe("the workspace boundary", () => {
  const everywhere: readonly (readonly [FileToolName, (path: string) => Json])[] = [
    ["read_file", (path) => ({ path })],
    ["list_files", (path) => ({ path })],
    ["search_files", (path) => ({ path, query: "secret" })],
    ["search_files", (path) => ({ path, query: "secret", regex: true })],
    ["write_file", (path) => ({ path, text: "x" })],
    ["edit_file", (path) => ({ path, old: "secret", new: "x" })],
  ];

  describe.each(everywhere)("%s", (name, input) => {
    test.each([
      ["..", "outside of the workspace"],
      ["../workspace-2/secret.txt", "outside of the workspace"],
      ["a/../../workspace-2/secret.txt", "outside of the workspace"],
      ["/etc/passwd", "outside of the workspace"],
      ["link-out", "by a link"],
      ["link-out/secret.txt", "by a link"],
      ["link-out/new/deep.txt", "by a link"],
      ["link-file", "by a link"],
      ["dangling", "does not exist"],
      ["dangling/x", "does not exist"],
      ["a\0b", "NUL"],
    ])("refuses %j", async (path, why) => {
      symlinkSync(outside, join(workspace, "link-out"));
      symlinkSync(join(outside, "secret.txt"), join(workspace, "link-file"));
      symlinkSync(join(outside, "not-there"), join(workspace, "dangling"));
      const told = tools()(name, input(path));
      await expect(told).rejects.toThrow(why);
      expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe("secret\n");
      expect(readdirSync(outside)).toEqual(["secret.txt"]);
    });

    test("a pipe is not waited for and a device is not read", async () => {
      execFileSync("mkfifo", [join(workspace, "pipe")]);
      symlinkSync("/dev/zero", join(workspace, "zero"));
      const why = name === "list_files" ? "not a directory" : "not a regular file";
      await expect(tools()(name, input("pipe"))).rejects.toThrow(why);
      await expect(tools()(name, input("zero"))).rejects.toThrow("by a link");
      expect(lstatSync(join(workspace, "pipe")).isFIFO()).toBe(true);
    });

    test("hidden paths cannot be reached by any path", async () => {
      put("state/belay.db", "secret");
      symlinkSync("state", join(workspace, "way"));
      const use = tools({ hidden: ["state"] });
      for (const path of ["state", "state/belay.db", "way", "way/belay.db", join(workspace, "state", "new")]) {
        await expect(use(name, input(path))).rejects.toThrow("belongs to Belay");
      }
    });
  });

  test("hidden paths are neither listed nor searched", async () => {
    put("state/belay.db", "needle");
    put("open.txt", "needle");
    const use = tools({ hidden: ["state"] });
    expect(await use("list_files", {})).toBe(".: 1 in all.\nopen.txt");
    expect(await use("list_files", { pattern: "**" })).toBe("., **: 1 in all.\nopen.txt");
    for (const regex of [true, false]) {
      expect(await use("search_files", { query: "needle", regex })).toBe("1 line in 1 files.\nopen.txt:1: needle");
    }
  });

  test("links within the workspace and absolute paths are followed", async () => {
    put("deep/a.txt", "hello\n");
    symlinkSync("deep", join(workspace, "short"));
    symlinkSync(workspace, join(base, "alias"));
    const use = tools({ workspace: join(base, "alias") });
    expect(await use("read_file", { path: "short/a.txt" })).toContain("deep/a.txt, lines 1 to 1");
    expect(await use("read_file", { path: join(workspace, "deep/a.txt") })).toContain("hello");
    expect(await use("read_file", { path: join(base, "alias", "deep/a.txt") })).toContain("hello");
  });

  test("a name with a line break is readable, shown in quotes, and never created", async () => {
    put("a\nb", "x\n");
    const use = tools();
    expect(await use("read_file", { path: "a\nb" })).toContain('"a\\nb", lines');
    expect(await use("list_files", {})).toBe('.: 1 in all.\n"a\\nb"');
    await expect(use("write_file", { path: "c\nd", text: "" })).rejects.toThrow("control characters");
  });

  test("a directory that is replaced by a link after the check is not entered", async () => {
    put("dir/secret.txt", "harmless\n");
    const place = await locate({ workspace, hidden: [] }, "dir/secret.txt");
    renameSync(join(workspace, "dir"), join(workspace, "away"));
    symlinkSync(outside, join(workspace, "dir"));
    await expect(openFile(place)).rejects.toThrow();
  });

  test("a parent that is replaced by a link is detected once the directory is open", async () => {
    put("top/dir/secret.txt", "harmless\n");
    mkdirSync(join(outside, "dir"));
    renameSync(join(workspace, "top"), join(workspace, "away"));
    symlinkSync(outside, join(workspace, "top"));
    await expect(holdDirectory(workspace, join(workspace, "top", "dir"))).rejects.toMatchObject({ code: "conflict" });
  });

  test("a file that is replaced by a link or a pipe after the check is not opened", async () => {
    put("a.txt", "harmless\n");
    const place = await locate({ workspace, hidden: [] }, "a.txt");
    rmSync(join(workspace, "a.txt"));
    symlinkSync(join(outside, "secret.txt"), join(workspace, "a.txt"));
    await expect(openFile(place)).rejects.toThrow("not a regular file");
    rmSync(join(workspace, "a.txt"));
    execFileSync("mkfifo", [join(workspace, "a.txt")]);
    await expect(openFile(place)).rejects.toThrow("not a regular file");
  });
});

describe("list_files", () => {
  test("lists one directory, with the kind of each entry", async () => {
    put("b.txt", "");
    put("src/a.ts", "");
    symlinkSync(outside, join(workspace, "link"));
    expect(await tools()("list_files", {})).toBe(".: 3 in all.\nb.txt\nlink (a link)\nsrc/");
    expect(await tools()("list_files", { path: "src" })).toBe("src: 1 in all.\nsrc/a.ts");
    await expect(tools()("list_files", { path: "b.txt" })).rejects.toThrow("not a directory");
    await expect(tools()("list_files", { path: "scr" })).rejects.toThrow('Did you mean "src"?');
  });

  test("finds files by a pattern, without dependencies, version control and links", async () => {
    for (const name of ["a.ts", "x/b.ts", "x/y/c.tsx", "node_modules/d.ts", "x/.git/e.ts"]) put(name, "");
    symlinkSync(workspace, join(workspace, "x", "loop"));
    expect(await tools()("list_files", { pattern: "*.ts" })).toBe(
      "., *.ts: 2 in all.\nNot entered: .git, node_modules.\na.ts\nx/b.ts",
    );
    expect(await tools()("list_files", { path: "node_modules", pattern: "*.ts" })).toContain("node_modules/d.ts");
  });

  test("says how many more there are", async () => {
    for (let index = 0; index < LIST_RESULT_ENTRIES_MAX + 3; index += 1) put(`many/${index}`, "");
    const told = await tools()("list_files", { path: "many" });
    expect(told).toContain(`${LIST_RESULT_ENTRIES_MAX + 3} in all`);
    expect(told).toContain("… and 3 more");
  });
});

describe("search_files", () => {
  const started: Worker[] = [];
  const note = (message: unknown): void => {
    started.push((message as { readonly worker: Worker }).worker);
  };
  beforeEach(() => {
    started.length = 0;
    subscribe("worker_threads", note);
  });
  /** Node gives a thread that has ended the id -1. */
  afterEach(() => {
    unsubscribe("worker_threads", note);
    expect(started.map(({ threadId }) => threadId)).toEqual(started.map(() => -1));
  });

  test("finds a literal text, and only in the given place", async () => {
    put("a.ts", "const a = f(x);\r\n");
    put("b/c.md", "no\nF(X)\nf(x) again\n");
    put("bin", Uint8Array.from([0x66, 0x28, 0x78, 0x29, 0]));
    put("node_modules/d.ts", "f(x)");
    put("empty.ts", "");
    const use = tools();
    expect(await use("search_files", { query: "f(x)" })).toBe(
      "2 lines in 3 files.\nNot entered: node_modules.\na.ts:1: const a = f(x);\nb/c.md:3: f(x) again",
    );
    expect(await use("search_files", { query: "f(x)", ignoreCase: true, pattern: "*.md" })).toContain("b/c.md:2: F(X)");
    expect(await use("search_files", { query: "f(x)", path: "a.ts" })).toBe(
      "1 line in 1 files.\na.ts:1: const a = f(x);",
    );
    expect(await use("search_files", { query: "nothing like it" })).toContain("Nothing was found in 3 files.");
    expect(started).toEqual([]);
  });

  test("runs an expression in a thread, which is gone afterwards", async () => {
    put("a.ts", "let count = 12;\nlet name;\n");
    const told = await tools()("search_files", { query: "count = \\d+", regex: true });
    expect(told).toBe("1 line in 1 files.\na.ts:1: let count = 12;");
    expect(started).toHaveLength(1);
  });

  test("an endless expression is stopped by the time limit, with the results so far", {
    meta: { id: "agent/regex-search-time-limit" },
  }, async () => {
    put("1.txt", "aaab\n");
    put("2.txt", `${"a".repeat(64)}!\n`);
    const call = new Call();
    const found = Promise.withResolvers<void>();
    call.partial = () => found.resolve();
    const told = tools()("search_files", { query: "^(a+)+b?$", regex: true }, call);
    await found.promise;
    await call.clock.advance(SEARCH_MS);
    await call.clock.advance(UNTRUSTED_STOP_MS);
    expect(await told).toMatch(/was ended after 15 s.*1\.txt:1: aaab/s);
  });

  test("a stop ends an endless expression", async () => {
    put("1.txt", "aaab\n");
    put("2.txt", `${"a".repeat(64)}!\n`);
    const call = new Call();
    const found = Promise.withResolvers<void>();
    call.partial = () => found.resolve();
    const told = tools()("search_files", { query: "^(a+)+b?$", regex: true }, call);
    const refused = expect(told).rejects.toThrow("stopped by the test");
    await found.promise;
    call.controller.abort(new Error("stopped by the test"));
    await call.clock.advance(UNTRUSTED_STOP_MS);
    await refused;
    expect(call.clock.pending).toEqual([]);
  });

  test("is bounded, and says what was left out", async () => {
    put("many.txt", `${"needle ".repeat(100)}\n`.repeat(300));
    put("large.txt", "");
    truncateSync(join(workspace, "large.txt"), 3 * 1024 * 1024);
    const told = await tools()("search_files", { query: "needle" });
    expect(told).toContain("The first 200 lines");
    expect(told).toContain("There is more");
    expect(told).toContain("1 files larger than");
    expect(told.length).toBeLessThan(70_000);
  });

  test("an invalid expression is refused with the reason", async () => {
    await expect(tools()("search_files", { query: "(", regex: true })).rejects.toThrow("not a regular expression");
    await expect(tools()("search_files", { query: "a\nb" })).rejects.toThrow("no line break");
  });
});

describe("write_file", () => {
  test("creates a file and its directories, and reports the change", async () => {
    const call = new Call();
    expect(await tools()("write_file", { path: "x/y/a.txt", text: "one\ntwo" }, call)).toBe(
      "Made x/y/a.txt: 7 bytes, 2 lines.",
    );
    expect(at("x/y/a.txt")).toBe("one\ntwo");
    expect(call.changes).toEqual(["x/y/a.txt"]);
    expect(readdirSync(join(workspace, "x/y"))).toEqual(["a.txt"]);
  });

  test("replaces a file atomically, keeps its mode, and leaves hard links alone", async () => {
    put("run.sh", "old");
    chmodSync(join(workspace, "run.sh"), 0o750);
    linkSync(join(workspace, "run.sh"), join(outside, "same"));
    expect(await tools()("write_file", { path: "run.sh", text: "new" })).toBe("Replaced run.sh: 3 bytes, 1 lines.");
    expect(statSync(join(workspace, "run.sh")).mode & 0o777).toBe(0o750);
    expect(readFileSync(join(outside, "same"), "utf8")).toBe("old");
  });

  test("writes through a link of the workspace into its target", async () => {
    put("real.txt", "old");
    symlinkSync("real.txt", join(workspace, "link.txt"));
    await tools()("write_file", { path: "link.txt", text: "new" });
    expect(at("real.txt")).toBe("new");
    expect(lstatSync(join(workspace, "link.txt")).isSymbolicLink()).toBe(true);
  });

  test.each([
    ...[".git/hooks/pre-commit", ".git", "sub/.GIT/config", ".husky/pre-push", ".vscode/tasks.json", ".mcp.json"],
    ...["belay.config.ts", "sub/belay.config.json", ".envrc", ".bashrc", ".npmrc"],
  ])("only people can write %s", async (path) => {
    const call = new Call();
    await expect(tools()("write_file", { path, text: "evil" }, call)).rejects.toThrow("only they may write there");
    expect(existsSync(join(workspace, path))).toBe(false);
    expect(call.changes).toEqual([]);
  });

  test("a guarded path is not reached through a link", async () => {
    mkdirSync(join(workspace, ".git", "hooks"), { recursive: true });
    symlinkSync(".git/hooks", join(workspace, "scripts"));
    await expect(tools()("write_file", { path: "scripts/post-commit", text: "" })).rejects.toThrow("only they");
  });

  test("a write stopped before the rename leaves nothing behind", async () => {
    put("a.txt", "old");
    const call = new Call();
    call.controller.abort(new Error("stopped"));
    await expect(tools()("write_file", { path: "a.txt", text: "new" }, call)).rejects.toThrow("stopped");
    expect(at("a.txt")).toBe("old");
    expect(readdirSync(workspace)).toEqual(["a.txt"]);
    expect(call.changes).toEqual([]);
  });

  test("a temporary file that a crash has left is not in the way", async () => {
    put(".belay-call_1.1-1.tmp", "left");
    await tools()("write_file", { path: "a.txt", text: "new" });
    expect(at("a.txt")).toBe("new");
    expect(at(".belay-call_1.1-1.tmp")).toBe("left");
  });

  test("does not overwrite a file that has changed since the session read it", async () => {
    put("a.txt", "old");
    const use = tools();
    await use("read_file", { path: "a.txt" });
    put("a.txt", "written by others");
    await expect(use("write_file", { path: "a.txt", text: "mine" })).rejects.toMatchObject({ code: "conflict" });
    expect(at("a.txt")).toBe("written by others");
    // Another session has not read it, and the same one may write after reading again.
    await use("read_file", { path: "a.txt" });
    await use("write_file", { path: "a.txt", text: "mine" });
    await use("write_file", { path: "a.txt", text: "mine again" });
    await use("write_file", { path: "a.txt", text: "theirs" }, new Call("ses_2"));
    expect(at("a.txt")).toBe("theirs");
  });
});

describe("edit_file", () => {
  test("a concurrent change by another process is not lost", async () => {
    put("a.txt", "old");
    const call = new Call();
    let looks = 0;
    // Read once while it reads and once when the new text is complete beside the old one.
    Object.assign(call.signal, {
      throwIfAborted: () => {
        looks += 1;
        if (readdirSync(workspace).length > 1) put("a.txt", "written by others");
      },
    });
    const edit = tools()("edit_file", { path: "a.txt", old: "old", new: "mine" }, call);
    await expect(edit).rejects.toMatchObject({ code: "conflict" });
    expect(looks).toBeGreaterThan(1);
    expect(at("a.txt")).toBe("written by others");
    expect(readdirSync(workspace)).toEqual(["a.txt"]);
    expect(call.changes).toEqual([]);
  });

  test("replaces a unique text, and says where", async () => {
    put("a.ts", "one\ntwo\nthree\n");
    const call = new Call();
    expect(await tools()("edit_file", { path: "a.ts", old: "two", new: "2$&" }, call)).toBe("Edited a.ts: at line 2.");
    expect(at("a.ts")).toBe("one\n2$&\nthree\n");
    expect(call.changes).toEqual(["a.ts"]);
  });

  test("a repeated text needs `all`, and a missing one is reported", async () => {
    put("a.ts", "x x x");
    const use = tools();
    await expect(use("edit_file", { path: "a.ts", old: "x", new: "y" })).rejects.toThrow("3 times");
    await expect(use("edit_file", { path: "a.ts", old: "z", new: "y" })).rejects.toThrow("not in");
    await expect(use("edit_file", { path: "a.ts", old: "", new: "y" })).rejects.toThrow("empty");
    await expect(use("edit_file", { path: "a.ts", old: "x", new: "x" })).rejects.toThrow("the same");
    await expect(use("edit_file", { path: "b.ts", old: "x", new: "y" })).rejects.toMatchObject({ code: "not_found" });
    expect(await use("edit_file", { path: "a.ts", old: "x", new: "y", all: true })).toContain("3 places");
    expect(at("a.ts")).toBe("y y y");
  });

  test("keeps line ends and byte order mark as they are", async () => {
    put("a.txt", "\uFEFFone\r\ntwo\r\n");
    await tools()("edit_file", { path: "a.txt", old: "one\ntwo", new: "1\n2" });
    expect(at("a.txt")).toBe("\uFEFF1\r\n2\r\n");
  });

  test("refuses a file that is not text or too large", async () => {
    const bytes = Uint8Array.from([0x61, 0xff, 0x62]);
    put("a.bin", bytes);
    await expect(tools()("edit_file", { path: "a.bin", old: "a", new: "b" })).rejects.toThrow("not valid UTF-8");
    expect(readFileSync(join(workspace, "a.bin"))).toEqual(Buffer.from(bytes));
    put("large", "");
    truncateSync(join(workspace, "large"), FILE_EDIT_BYTES_MAX + 1);
    await expect(tools()("edit_file", { path: "large", old: "a", new: "b" })).rejects.toThrow("can be edited");
  });

  test("concurrent edits of one file are all applied", async () => {
    put("a.txt", Array.from({ length: 8 }, (_, index) => `<${index}>`).join("\n"));
    const use = tools();
    await use("read_file", { path: "a.txt" });
    const edits = Array.from({ length: 8 }, (_, index) =>
      use("edit_file", { path: "a.txt", old: `<${index}>`, new: `[${index}]` }),
    );
    await Promise.all(edits);
    expect(at("a.txt")).toBe(Array.from({ length: 8 }, (_, index) => `[${index}]`).join("\n"));
  });
});

describe("approval", () => {
  const judged = (name: FileToolName, input: Json, options: FileToolsOptions = {}) =>
    fileTools({ workspace, ...options })[name].judge(input, { id: "call_1" });

  test("is required to write a file, for that file, and not to read one", async () => {
    expect(await judged("write_file", { path: "./a.txt", text: "" })).toEqual({
      kind: "takes",
      approval: { scope: 'write_file "a.txt"' },
    });
    expect(await judged("edit_file", { path: "a.txt", old: "a", new: "b" })).toMatchObject({
      approval: { scope: 'edit_file "a.txt"' },
    });
    expect(await judged("read_file", { path: "a.txt" })).toEqual({ kind: "takes", approval: false });
  });

  test("can be configured, and is required if the callback throws", async () => {
    const input = { path: "a.txt", text: "" };
    expect(await judged("write_file", input, { approval: { write_file: false } })).toMatchObject({ approval: false });
    const throws = { approval: { write_file: () => Promise.reject(new Error("no idea")) } };
    expect(await judged("write_file", input, throws)).toMatchObject({
      approval: { scope: 'write_file "a.txt"', note: expect.stringContaining("no idea") },
    });
  });

  test("misspelled options are refused", () => {
    expect(() => fileTools({ approval: { write: true } } as FileToolsOptions)).toThrow("has no `write`");
    expect(() => fileTools({ worksapce: "." } as FileToolsOptions)).toThrow("has no `worksapce`");
    expect(() => fileTools({ bytesMax: 1 })).toThrow("bytesMax");
  });
});

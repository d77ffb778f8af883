// The working directories of sessions: which are allowed, and what runs in them.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openTestBelay } from "../../test/fixtures/belay.ts";
import { DIRECTORY_CHARS_MAX } from "../core/limits.ts";
import type { Turn } from "../ports/agent.ts";
import type { Belay } from "./belay.ts";

let base = "";
let workspace = "";
let project = "";
const open: Belay[] = [];

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "belay-directories-")));
  workspace = join(base, "workspace");
  project = join(workspace, "project");
  mkdirSync(project, { recursive: true });
  mkdirSync(join(base, "workspace-2"));
  writeFileSync(join(workspace, "file"), "");
  symlinkSync(base, join(workspace, "out"));
  symlinkSync("project", join(workspace, "link"));
  symlinkSync(workspace, join(base, "alias"));
});

afterEach(async () => {
  for (const belay of open.splice(0)) await belay.close({ mode: "cancel" });
  rmSync(base, { recursive: true, force: true });
});

/** The directories that a turn and its call report, and the actual directory of a command. */
async function look(turn: Turn): Promise<string> {
  const seen = await turn.call("look", {}, async ({ cwd, processes }) => {
    const ran = await processes.run("pwd");
    return { cwd: cwd ?? null, pwd: ran.kind === "ended" ? (ran.output?.tail ?? "") : "" };
  });
  return JSON.stringify({ turn: turn.cwd ?? null, ...(seen.kind === "completed" ? { call: seen.value } : seen) });
}

async function opened(options: Parameters<typeof openTestBelay>[1] = {}): Promise<Belay> {
  const { belay } = await openTestBelay({ look }, { processes: { workspace }, graceMs: 500, ...options });
  open.push(belay);
  return belay;
}

const seenIn = (path: string | null, pwd: string): object => ({ turn: path, call: { cwd: path, pwd: `${pwd}\n` } });

test("turns, calls and commands of a session run in its directory, and others in the workspace", async () => {
  const belay = await opened();
  const session = await belay.createSession({ cwd: project });
  expect(await session.row()).toMatchObject({ cwd: project });
  expect(JSON.parse(await session.prompt("look").text())).toEqual(seenIn(project, project));
  const run = belay.prompt("look", { cwd: project });
  expect(JSON.parse(await run.text())).toEqual(seenIn(project, project));
  const plain = await belay.createSession();
  expect(await plain.row()).toMatchObject({ cwd: undefined });
  expect(JSON.parse(await plain.prompt("look").text())).toEqual(seenIn(null, workspace));
});

test("a process of the session starts there too, and cannot start outside of it", async () => {
  const belay = await opened();
  const session = await belay.createSession({ cwd: project });
  const child = await session.processes.start("pwd");
  expect((await child.wait())?.output?.tail).toBe(`${project}\n`);
  await expect(session.processes.start("pwd", { cwd: workspace })).rejects.toMatchObject({ code: "invalid" });
  const chosen = session.processes.start("pwd", { workspace: base } as object);
  await expect(chosen).rejects.toMatchObject({ code: "invalid" });
});

test("G1: a restart keeps the directory, from the log and from a snapshot", async () => {
  const store = join(base, "belay.db");
  for (const runs of [0, 60]) {
    const first = await opened({ store });
    const { id } = await first.createSession({ cwd: project });
    for (let index = 0; index < runs; index += 1) await first.session(id).prompt(`run ${index}`).outcome;
    await open.pop()?.close();
    const second = await opened({ store });
    expect(await second.session(id).row()).toMatchObject({ cwd: project });
    expect(JSON.parse(await second.session(id).prompt("look").text())).toEqual(seenIn(project, project));
    await open.pop()?.close();
  }
});

test("G2: the same key with another directory is a conflict; a link to the same directory is not", async () => {
  const belay = await opened();
  const { id } = await belay.createSession({ key: "k", cwd: project });
  expect((await belay.createSession({ key: "k", cwd: join(workspace, "link") })).id).toBe(id);
  for (const other of [{}, { cwd: workspace }]) {
    await expect(belay.createSession({ key: "k", ...other })).rejects.toMatchObject({
      ...{ code: "conflict", message: expect.stringContaining("another directory") },
    });
  }
});

describe("allowed directories", () => {
  const refused = async (belay: Belay, cwd: unknown, code: string): Promise<void> => {
    const options = { cwd } as { readonly cwd: string };
    await expect(belay.createSession(options)).rejects.toMatchObject({ code });
    expect(() => belay.prompt("go", options)).toThrow(expect.objectContaining({ code }));
    expect(await belay.sessions()).toEqual([]);
  };

  test.each([
    ["the directory above", ".."],
    ["one that begins with the same letters", "../workspace-2"],
    ["a link that leads out", "out"],
    ["what is behind such a link", "out/workspace-2"],
    ["the root", "/"],
  ])("G35: %s is outside of the workspace, and nothing is recorded", async (_, way) => {
    const path = way.startsWith("/") ? way : `${workspace}/${way}`;
    await refused(await opened(), path, "forbidden");
  });

  test("G35: an error about a forbidden path does not reveal what exists there", async () => {
    const belay = await opened();
    const said = async (cwd: string): Promise<string> => {
      const error: unknown = await belay.createSession({ cwd }).catch((thrown: unknown) => thrown);
      return String(error).replaceAll(cwd, "PATH");
    };
    writeFileSync(join(base, "file"), "");
    const [there, file, gone] = await Promise.all(["workspace-2", "file", "gone"].map((one) => said(join(base, one))));
    expect(there).toContain("outside of the workspace");
    expect([file, gone]).toEqual([there, there]);
  });

  test.each([
    ["one that does not exist", () => join(workspace, "nowhere")],
    ["a file", () => join(workspace, "file")],
    ["a relative path", () => "project"],
    ["an empty one", () => ""],
    ["one with a NUL", () => `${workspace}/a\0b`],
    ["one that is not well-formed", () => `${workspace}/\ud800`],
    ["one that is too long", () => `/${"x".repeat(DIRECTORY_CHARS_MAX)}`],
    ["a number", () => 7],
  ])("%s is refused with every rule", async (_, path) => {
    await refused(await opened(), path(), "invalid");
    await refused(await opened({ directories: "any" }), path(), "invalid");
  });

  test("are the workspace itself, directories in it, and other paths to them", async () => {
    const belay = await opened();
    const ways = [workspace, `${workspace}/project/..`, join(base, "alias"), join(base, "alias", "link")];
    const rows = await Promise.all(ways.map(async (cwd) => (await belay.createSession({ cwd })).row()));
    expect(rows.map(({ cwd }) => cwd)).toEqual([workspace, workspace, workspace, project]);
    const linked = await opened({ processes: { workspace: join(base, "alias") } });
    expect(await (await linked.createSession({ cwd: project })).row()).toMatchObject({ cwd: project });
  });

  test("are all, if the host says so, for commands and their calls too", async () => {
    const elsewhere = join(base, "workspace-2");
    const belay = await opened({ directories: "any" });
    const session = await belay.createSession({ cwd: elsewhere });
    expect(JSON.parse(await session.prompt("look").text())).toEqual(seenIn(elsewhere, elsewhere));
    await expect(openTestBelay({}, { directories: "all" as "any" })).rejects.toMatchObject({ code: "invalid" });
  });

  test("default to the working directory of the program", async () => {
    const belay = await opened({ processes: {} });
    const here = realpathSync(process.cwd());
    expect(await (await belay.createSession({ cwd: here })).row()).toMatchObject({ cwd: here });
    await expect(belay.createSession({ cwd: base })).rejects.toMatchObject({ code: "forbidden" });
  });
});

// What a command of an embedded Belay can see of it: its store, and the tokens and the socket of a server in front of
// it.
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { STORE_ENDINGS } from "../../src/core/own-paths.ts";
import { serveBelay } from "../../src/http/serve.ts";
import type { Notice } from "../../src/ports/hooks.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { here } from "../fixtures/mechanisms-here.ts";

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

async function output(belay: Belay, command: string): Promise<string> {
  const session = await belay.createSession();
  const child = await session.processes.start(command, { feedback: "silent" });
  await child.wait();
  return (await (await child.output())?.read())?.text ?? "";
}

describe.each(here().filter((one) => one === "bubblewrap" || one === "unshare"))("held by %s", (mechanism) => {
  type Opened = { readonly belay: Belay; readonly dir: string; readonly notices: string[] };
  const open = async (link?: string): Promise<Opened> => {
    const dir = mkdtempSync(join(tmpdir(), "belay-embedded-"));
    undo.push(() => rmSync(dir, { recursive: true, force: true }));
    const notices: string[] = [];
    const onNotice = (notice: Notice): void => {
      if (notice.type === "process") notices.push(notice.message);
    };
    const processes = { workspace: dir, mechanism };
    if (link !== undefined) symlinkSync(dir, join(dir, link));
    const store = join(dir, link ?? "", "belay.db");
    const belay = await openBelay({ agent: () => "done", store, onNotice, processes });
    undo.push(() => belay.close({ mode: "cancel" }));
    return { belay, dir, notices };
  };

  test("G38: a command of an embedded Belay sees neither its store, nor tokens and sockets", async () => {
    const { belay, dir, notices } = await open();
    // A command before any server exists: hidden paths are looked up for each command.
    expect(await output(belay, "cat belay.db 2>/dev/null")).toBe("");
    const tokens = join(dir, "tokens");
    const socket = join(dir, "run/belay.sock");
    const shared = join(dir, "shared");
    mkdirSync(shared, { mode: 0o700 });
    mkdirSync(join(shared, "of-the-host"));
    const places = [undefined, { kind: "socket", path: socket }, { kind: "socket", path: join(shared, "s") }] as const;
    for (const at of places) {
      const serving = await serveBelay(belay, { tokens, ...(at === undefined ? {} : { at }) });
      undo.push(() => serving.close());
    }
    const before = inodesOf(dir);
    const text = await output(
      belay,
      [
        "exec 2>/dev/null; cat belay.db belay.db-wal tokens/token tokens/tokens.json",
        "test -S run/belay.sock && echo socket; test -S shared/s && echo socket; ls -A tokens/ run/",
        "rm -rf tokens/* run/* shared/s belay.db*; mv belay.db-wal w; mv tokens t",
        ...STORE_ENDINGS.map((ending) => `(echo x > belay.db${ending})`),
        "echo x > tokens/token; test -d shared/of-the-host && echo over",
      ].join("\n"),
    );
    expect(text).toBe("run/:\n\ntokens/:\nover\n");
    expect(inodesOf(dir)).toEqual(before);
    for (const ending of STORE_ENDINGS) expect(readFileSync(join(dir, `belay.db${ending}`), "latin1")).not.toBe("x\n");
    expect(readFileSync(join(tokens, "token"), "latin1")).not.toBe("x\n");
    expect(notices).toContainEqual(expect.stringContaining("lies in the workspace"));
  });

  test("G38: a link that commands can replace is reported, with its target", async () => {
    const { belay, dir, notices } = await open("link");
    await output(belay, "true");
    const text = notices.find((notice) => notice.includes(`replace the link ${join(dir, "link")}`));
    expect(text).toContain(`Name the place itself: ${join(dir, "belay.db")}`);
    expect((await open()).notices).not.toContainEqual(expect.stringContaining("link"));
  });

  test("G38: names reserved for its store are free again after it is closed", async () => {
    const { belay, dir } = await open();
    await output(belay, "true");
    expect(existsSync(join(dir, "belay.db-journal"))).toBe(true);
    await belay.close();
    expect(existsSync(join(dir, "belay.db-journal"))).toBe(false);
  });
});

/** Every file with its inode: a file that was replaced or renamed has another one. */
const inodesOf = (dir: string): readonly (readonly [path: string, inode: number])[] =>
  readdirSync(dir, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.startsWith("belay.db.processes/"))
    .toSorted()
    .map((path) => [path, lstatSync(join(dir, path)).ino] as const);

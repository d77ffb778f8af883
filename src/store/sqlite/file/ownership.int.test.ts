// A file that is removed, replaced, linked or taken over while it is open.
import { copyFileSync, existsSync, linkSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Event } from "../../../core/model/event.ts";
import type { RunId, SessionId } from "../../../core/model/ids.ts";
import { packBatch, unpackBatches, type Written } from "../thread/message.ts";
import { type OpenFile, openFile } from "./open-file.ts";
import { lockPath, readOwner } from "./owner.ts";

let directory = "";
let file = "";
let opened: OpenFile;
let isClosed = false;
const close = (): void => {
  isClosed = true;
  opened.close();
};
beforeEach(() => {
  isClosed = false;
  directory = mkdtempSync(join(tmpdir(), "belay-owned-"));
  file = join(directory, "belay.db");
  opened = openFile(file, { markEveryMs: 0 });
  expect(create("ses_a")).toEqual({ kind: "appended", head: 2 });
});
afterEach(() => {
  try {
    if (!isClosed) opened.close();
  } catch {
    // Several tests leave the file in an unexpected place.
  }
  rmSync(directory, { recursive: true, force: true });
});

function append(session: SessionId, expected: number, events: readonly Event[], to = opened): Written | undefined {
  const cells: (string | number | null)[] = [];
  packBatch(cells, { session, expected, events, at: 1 });
  return to.writer.append(unpackBatches(cells))[0];
}

const prompt = (id: RunId): Event => ({
  type: "run.accepted",
  ...{ runId: id, prompt: { text: "x" }, delivery: "queue", ahead: 0 },
});

const create = (session: SessionId, to = opened): Written | undefined =>
  append(session, 0, [{ type: "session.created", sessionId: session }, prompt(`run_${session}`)], to);

/** Ends the run that is live. */
const settle = (session: SessionId, to = opened): Written | undefined =>
  append(session, 2, [{ type: "run.settled", runId: `run_${session}`, outcome: CANCELLED }], to);

const CANCELLED = { kind: "cancelled", reason: { kind: "user" } } as const;
const refused = (code: string) => ({ kind: "failed", code, message: expect.any(String) });
const beside = ["", "-wal", "-shm"];

describe("G28: a file that is not at its path any more", () => {
  it("that was removed accepts nothing, reports that, and leaves its mark: the next start is refused", () => {
    for (const end of beside) rmSync(`${file}${end}`);
    expect(create("ses_b")).toEqual(refused("store_corrupt"));
    expect(settle("ses_a")).toEqual(refused("store_corrupt"));
    expect(() => opened.writer.probe()).toThrow(expect.objectContaining({ code: "store_corrupt" }));
    expect(close).toThrow(/was removed while it was open/);
    expect(existsSync(file)).toBe(false);
    expect(existsSync(`${file}.mark`)).toBe(true);
    expect(() => openFile(file)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
  });

  it("that was removed with all files beside it is reported by a check and by close, and leaves a mark again", () => {
    close();
    opened = openFile(file);
    for (const end of [...beside, ".lock", ".mark", ".reserve"]) rmSync(`${file}${end}`, { force: true });
    expect(() => opened.look()).toThrow(/was removed while it was open/);
    rmSync(`${file}.mark`);
    expect(() => opened.close()).toThrow(/was removed while it was open/);
    expect(() => openFile(file)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
  });

  it("that was replaced accepts nothing, and the replacement is not touched", () => {
    copyFileSync(file, join(directory, "copy.db"));
    renameSync(join(directory, "copy.db"), file);
    expect(create("ses_b")).toEqual(refused("store_corrupt"));
    expect(settle("ses_a")).toEqual(refused("store_corrupt"));
    expect(close).toThrow(/was replaced while it was open/);
    expect(existsSync(`${file}.mark`)).toBe(true);
  });

  it("whose directory was renamed accepts nothing, and everything again once it is back", () => {
    const away = `${directory}-away`;
    renameSync(directory, away);
    expect(create("ses_b")).toEqual(refused("store_corrupt"));
    renameSync(away, directory);
    expect(create("ses_b")).toEqual({ kind: "appended", head: 2 });
    expect(settle("ses_a")).toEqual({ kind: "appended", head: 3 });
  });

  it("with a second name accepts ends but nothing new, until it has one name again", () => {
    const second = join(directory, "second.db");
    linkSync(file, second);
    expect(create("ses_b")).toEqual(refused("store_locked"));
    expect(() => opened.writer.probe()).toThrow(expect.objectContaining({ code: "store_locked" }));
    expect(settle("ses_a")).toEqual({ kind: "appended", head: 3 });
    expect(() => openFile(second)).toThrow(/has 2 names/);
    rmSync(second);
    expect(create("ses_b")).toEqual({ kind: "appended", head: 2 });
  });
});

/** Every write that is not an append. */
const UPKEEP: Readonly<Record<string, (to: OpenFile) => unknown>> = {
  trim: ({ writer }) => writer.trim("ses_a", 2),
  remove: ({ writer }) => writer.remove("ses_a"),
  reclaim: ({ writer }) => writer.reclaim(),
  probe: ({ writer }) => writer.probe(),
};

describe.each(Object.entries(UPKEEP))("%s", (_, act) => {
  it("G28: is refused in a file that was removed, and leaves its mark", () => {
    for (const end of beside) rmSync(`${file}${end}`);
    expect(() => act(opened)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
    expect(close).toThrow(/was removed/);
    expect(() => openFile(file)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
  });

  it("G26: is refused in a file that another program has opened since", () => {
    rmSync(lockPath(file));
    const second = openFile(file);
    expect(() => act(opened)).toThrow(expect.objectContaining({ code: "store_locked" }));
    second.close();
    expect(() => act(opened)).toThrow(expect.objectContaining({ code: "store_locked" }));
  });
});

describe("G26: a file whose lock was removed", () => {
  it("with the file itself is locked again at the next append: no program creates a new one in its place", () => {
    for (const end of [...beside, ".lock", ".mark", ".reserve"]) rmSync(`${file}${end}`);
    expect(create("ses_b")).toEqual(refused("store_corrupt"));
    expect(() => openFile(file)).toThrow(expect.objectContaining({ code: "store_locked" }));
  });

  it("with its whole directory is locked again once there is a directory", () => {
    rmSync(directory, { recursive: true });
    expect(create("ses_b")).toEqual(refused("store_corrupt"));
    mkdirSync(directory);
    expect(create("ses_b")).toEqual(refused("store_corrupt"));
    expect(() => openFile(file)).toThrow(expect.objectContaining({ code: "store_locked" }));
  });

  it("and replaced by another program's accepts nothing more, even when that program has ended", () => {
    for (const end of [...beside, ".lock", ".mark", ".reserve"]) rmSync(`${file}${end}`);
    const second = openFile(file);
    expect(create("ses_b")).toEqual({ kind: "fenced" });
    second.close();
    expect(settle("ses_a")).toEqual({ kind: "fenced" });
    openFile(file).close();
  });

  it("by renaming its directory keeps that lock, and takes none in a directory that replaces it", () => {
    const away = `${directory}-away`;
    renameSync(directory, away);
    mkdirSync(directory);
    expect(create("ses_b")).toEqual(refused("store_corrupt"));
    openFile(file).close();
    rmSync(directory, { recursive: true });
    expect(() => openFile(join(away, "belay.db"))).toThrow(expect.objectContaining({ code: "store_locked" }));
    renameSync(away, directory);
    expect(create("ses_b")).toEqual({ kind: "appended", head: 2 });
  });

  it("stays its owner's: the lock is taken again with the next append", () => {
    rmSync(lockPath(file));
    expect(create("ses_b")).toEqual({ kind: "appended", head: 2 });
    expect(() => openFile(file)).toThrow(expect.objectContaining({ code: "store_locked" }));
  });

  it("and that a second writer has opened accepts nothing more from the first", () => {
    rmSync(lockPath(file));
    // In one process nothing else shows that the first is alive; for another process its pid would.
    const second = openFile(file);
    expect(readOwner(file)?.pid).toBe(process.pid);
    expect(create("ses_b")).toEqual({ kind: "fenced" });
    expect(settle("ses_a")).toEqual({ kind: "fenced" });
    expect(() => opened.epochs()).toThrow(expect.objectContaining({ code: "store_locked" }));
    second.close();
    // Its lock is free again, and its number is still not the file's.
    expect(settle("ses_a")).toEqual({ kind: "fenced" });
  });
});

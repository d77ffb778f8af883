import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Gate } from "../../testing/gate.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import {
  AUDIT_LINE_BYTES_MAX,
  AUDIT_MEMORY_MAX,
  AUDIT_SCAN_BYTES_MAX,
  AUDIT_WAIT_MS_MAX,
  AUDIT_WAITING_BYTES_MAX,
} from "../limits.ts";
import { redactor } from "../redactor.ts";
import { type AuditFileOptions, openAuditTrail } from "./audit-file.ts";
import { type AppendFile, auditFile, openAuditFile } from "./audit-folder.ts";
import { auditPage } from "./audit-page.ts";
import type { AuditRecord } from "./audit-record.ts";
import { type AuditQuery, type AuditTrail, memoryAuditTrail } from "./audit-trail.ts";

const SECRET = "canary-1234-canary";
const redact = redactor([SECRET]);

let root: string;
let folder: string;
let logged: string[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "belay-audit-"));
  folder = join(root, "audit");
  logged = [];
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const log = {
  info: (msg: string, fields?: object) => void logged.push(`${msg} ${JSON.stringify(fields)}`),
  warn: (msg: string, fields?: object) => void logged.push(`${msg} ${JSON.stringify(fields)}`),
};

const openTrail = (options: Partial<AuditFileOptions> = {}): Promise<AuditTrail> =>
  openAuditTrail({ folder, redact, clock: manualClock(), log, ...options });

const record = (number: number, more: Partial<AuditRecord> = {}): AuditRecord => ({
  id: `req_${number}`,
  at: 1_000 + number,
  actor: "ann",
  via: "http",
  action: "cancel",
  answer: "stopping",
  ...more,
});

const numbers = (records: readonly AuditRecord[]): readonly number[] => records.map(({ id }) => Number(id.slice(4)));

/** All records, newest first, page by page. */
async function all(trail: Pick<AuditTrail, "read">, query: Partial<AuditQuery> = {}): Promise<readonly number[]> {
  const found: number[] = [];
  let before: string | undefined;
  do {
    const page = await trail.read({ limit: 7, ...query, ...(before === undefined ? {} : { before }) });
    found.push(...numbers(page.records));
    before = page.next;
  } while (before !== undefined);
  return found;
}

const down = (from: number, to: number): readonly number[] =>
  Array.from({ length: from - to + 1 }, (_, index) => from - index);

/** A disk whose writes behave as `write` says. */
function disk(write: (real: AppendFile, bytes: Buffer) => Promise<number>): Pick<AuditFileOptions, "openFile"> {
  return {
    openFile: async (where, number) => {
      const { file, bytes } = await openAuditFile(where, number);
      const wrapped = {
        close: () => file.close(),
        write: async (buffer: Buffer, offset: number, length: number) => ({
          bytesWritten: await write(file, buffer.subarray(offset, offset + length)),
          buffer,
        }),
      };
      return { file: wrapped as AppendFile, bytes };
    },
  };
}

const noSpace = (): Error => Object.assign(new Error("no space left on device"), { code: "ENOSPC" });

describe.each([
  ["in files", () => openTrail({ fileBytesMax: 1_000, filesKept: 100 })],
  ["in memory", async () => memoryAuditTrail(redact)],
])("a trail %s", (_, open) => {
  test("G36: returns actor, action, target and response of each request, newest first", async () => {
    const trail = await open();
    const whole = record(1, { target: "run_1", note: "enough", tenant: "acme", code: "busy", via: "bridge" });
    await trail.note(whole);
    await trail.note(record(2));
    expect(await trail.read({ limit: 10 })).toEqual({ records: [record(2), whole] });
    await trail.close();
  });

  test("is read page by page without gaps or duplicates, even while it grows", async () => {
    const trail = await open();
    for (const number of down(60, 1).toReversed()) await trail.note(record(number));
    const first = await trail.read({ limit: 25 });
    await Promise.all(down(90, 61).map((number) => trail.note(record(number))));
    const second = await trail.read({ limit: 25, before: first.next ?? "" });
    const third = await trail.read({ limit: 25, before: second.next ?? "" });
    expect([first, second, third].flatMap((page) => numbers(page.records))).toEqual(down(60, 1));
    expect(third.next).toBeUndefined();
    await trail.close();
  });

  test("can be filtered by tenant, target and actor", async () => {
    const trail = await open();
    for (const number of down(40, 1)) {
      await trail.note(
        record(number, { tenant: `t${number % 2}`, target: `run_${number % 3}`, actor: `a${number % 5}` }),
      );
    }
    expect(await all(trail, { tenant: "t1", target: "run_0" })).toEqual([3, 9, 15, 21, 27, 33, 39]);
    expect(await all(trail, { actor: "a2", tenant: "t0" })).toEqual([2, 12, 22, 32]);
    expect(await all(trail, { tenant: "another" })).toEqual([]);
    await trail.close();
  });

  test("G35: contains no secret and no field above its maximum length", async () => {
    const trail = await open();
    await trail.note(record(1, { note: `because ${SECRET}`, target: SECRET, actor: "x".repeat(10_000) }));
    const [kept] = (await trail.read({ limit: 1 })).records;
    expect(kept).toMatchObject({ note: "because [redacted]", target: "[redacted]" });
    expect(kept?.actor.length).toBeLessThan(300);
    await trail.close();
  });

  test("reports what is wrong with an invalid cursor or page size", async () => {
    const trail = await open();
    for (const before of ["x", "1.", "-1", "1.1.1", "../1.2", "9".repeat(99)]) {
      await expect(trail.read({ limit: 1, before })).rejects.toMatchObject({ code: "invalid" });
    }
    for (const limit of [0, -1, 1.5, Number.NaN]) {
      await expect(trail.read({ limit })).rejects.toMatchObject({ code: "invalid" });
    }
    await trail.close();
  });
});

test("G33: a trail in memory keeps the newest records", async () => {
  const trail = memoryAuditTrail(redact);
  for (let number = 1; number <= AUDIT_MEMORY_MAX * 2 + 5; number += 1) await trail.note(record(number));
  const found = await all(trail, { limit: 1_000 });
  expect(found).toEqual(down(AUDIT_MEMORY_MAX * 2 + 5, AUDIT_MEMORY_MAX + 6));
});

describe("the files", () => {
  test("G35: can be read by their owner only", async () => {
    const trail = await openTrail();
    await trail.note(record(1));
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(auditFile(folder, 1)).mode & 0o777).toBe(0o600);
    await trail.close();
  });

  test("G35: are not kept in a folder that others can enter, nor written through a link", async () => {
    mkdirSync(folder, { mode: 0o755 });
    await expect(openTrail()).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("others") });
    rmSync(folder, { recursive: true });
    mkdirSync(folder, { mode: 0o700 });
    symlinkSync(join(root, "elsewhere"), auditFile(folder, 1));
    await expect(openTrail()).rejects.toMatchObject({ code: "invalid" });
    expect(readdirSync(root)).toEqual(["audit"]);
  });

  test("K7: have a maximum number and size, and the oldest is deleted", {
    meta: { id: "G33/audit-files-bounded" },
  }, async () => {
    const trail = await openTrail({ fileBytesMax: 1_000, filesKept: 3 });
    for (const number of down(100, 1).toReversed()) await trail.note(record(number));
    const names = readdirSync(folder);
    expect(names).toHaveLength(3);
    for (const name of names) expect(statSync(join(folder, name)).size).toBeLessThanOrEqual(1_000);
    const kept = await all(trail);
    expect(kept).toEqual(down(100, 100 - kept.length + 1));
    expect(trail.missed).toBe(0);
    await trail.close();
    const again = await openTrail({ fileBytesMax: 1_000, filesKept: 3 });
    await again.note(record(101));
    expect((await all(again))[0]).toBe(101);
    await again.close();
  });

  test("can be read by another process, even before the first one exists", async () => {
    expect(await auditPage(folder, { limit: 1 })).toEqual({ records: [] });
    const trail = await openTrail();
    await trail.note(record(1));
    expect(numbers((await auditPage(folder, { limit: 1 })).records)).toEqual([1]);
    await trail.close();
  });

  test("have one line for each record, whatever the record contains", async () => {
    const trail = await openTrail();
    const forged = `\n${JSON.stringify(record(666))}\n\r\u2028\u0000\u001b[2J`;
    await trail.note(record(1, { note: forged, actor: forged, target: forged }));
    await trail.note(record(2));
    expect(readFileSync(auditFile(folder, 1), "utf8").split("\n")).toHaveLength(3);
    expect(await all(trail)).toEqual([2, 1]);
    expect((await trail.read({ limit: 2 })).records[1]?.note).toBe(forged);
    await trail.close();
  });
});

describe("a crash", () => {
  test("G36: by kill -9 does not lose the record of an answered request", async () => {
    const here = (file: string): string => JSON.stringify(pathToFileURL(`${import.meta.dirname}/${file}`).href);
    const script = `
      import { openAuditTrail } from ${here("audit-file.ts")};
      const none = () => () => {};
      const log = { info: none, warn: none };
      const trail = await openAuditTrail({
        folder: ${JSON.stringify(folder)}, redact: (text) => text, clock: { after: none }, log,
      });
      const record = ${JSON.stringify(record(0))};
      await Promise.all(Array.from({ length: 50 }, (_, n) => trail.note({ ...record, id: "req_" + n })));
      process.kill(process.pid, "SIGKILL");
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "ignore" });
    expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
    const trail = await openTrail();
    expect(await all(trail)).toEqual(down(49, 0));
    await trail.close();
  });

  test("that tears the last line loses that line and no other", async () => {
    const trail = await openTrail();
    for (const number of [1, 2, 3]) await trail.note(record(number));
    await trail.close();
    const path = auditFile(folder, 1);
    const whole = statSync(path).size;
    for (let cut = 1; cut < 20; cut += 1) {
      const text = readFileSync(path);
      truncateSync(path, whole - cut);
      // Without its line break it may be complete or half written: it is returned once that is known.
      expect(await all({ read: (query) => auditPage(folder, query) })).toEqual([2, 1]);
      const again = await openTrail();
      await again.note(record(4));
      expect(await all(again)).toEqual(cut === 1 ? [4, 3, 2, 1] : [4, 2, 1]);
      await again.close();
      writeFileSync(path, text);
    }
  });

  test("G33: lines that are not records are skipped, whatever their length", async () => {
    const trail = await openTrail();
    await trail.note(record(1));
    const path = auditFile(folder, 1);
    for (const garbage of ["null", "[]", '{"id":1}', "\u0000".repeat(100), "x".repeat(AUDIT_LINE_BYTES_MAX * 3), ""]) {
      appendFileSync(path, `${garbage}\n`);
    }
    await trail.note(record(2));
    expect(await all(trail)).toEqual([2, 1]);
    appendFileSync(path, "y".repeat(AUDIT_LINE_BYTES_MAX * 3));
    expect(await all(trail)).toEqual([2, 1]);
    await trail.close();
  });

  test("G33: a page searches a bounded number of bytes, and the next page continues from there", async () => {
    const trail = await openTrail();
    await trail.note(record(1, { actor: "bob" }));
    const line = `${JSON.stringify(record(2, { note: "n".repeat(900) }))}\n`;
    appendFileSync(auditFile(folder, 1), line.repeat(Math.ceil((AUDIT_SCAN_BYTES_MAX * 1.5) / line.length)));
    const first = await trail.read({ limit: 1, actor: "bob" });
    expect(first).toEqual({ records: [], next: expect.any(String) });
    expect(await trail.read({ limit: 1, actor: "bob", before: first.next ?? "" })).toEqual({
      records: [record(1, { actor: "bob" })],
    });
    await trail.close();
  });
});

describe("many requests", () => {
  test("that arrive while the disk is busy are one write, and each waits for it", async () => {
    const gate = new Gate();
    let writes = 0;
    const slow = disk(async (real, bytes) => {
      writes += 1;
      await gate.opened;
      return (await real.write(bytes)).bytesWritten;
    });
    const trail = await openTrail(slow);
    let answered = 0;
    const notes = down(200, 1).map((number) => trail.note(record(number)).then(() => (answered += 1)));
    await manualClock().advance(0);
    expect([writes, answered]).toEqual([1, 0]);
    gate.open();
    await Promise.all(notes);
    expect(writes).toBe(2);
    expect(await all(trail)).toEqual(down(200, 1).toReversed());
    await trail.close();
  });

  test("G33: take a bounded amount of memory when the disk hangs, and are still answered", async () => {
    const clock = manualClock();
    const gate = new Gate();
    const hanging = disk(async (real, bytes) => {
      await gate.opened;
      return (await real.write(bytes)).bytesWritten;
    });
    const trail = await openTrail({ ...hanging, clock });
    let answered = 0;
    const long = record(1, { note: "n".repeat(1_000) });
    const count = Math.ceil(AUDIT_WAITING_BYTES_MAX / 1_000);
    const notes = Array.from({ length: count }, () => trail.note(long).then(() => (answered += 1)));
    await clock.advance(AUDIT_WAIT_MS_MAX - 1);
    // Requests beyond the buffer did not wait.
    expect(trail.missed).toBeGreaterThan(0);
    expect(answered).toBe(trail.missed);
    await clock.advance(1);
    expect(answered).toBe(count);
    expect(logged).toHaveLength(1);
    gate.open();
    await Promise.all(notes);
    await trail.close();
    expect(readFileSync(auditFile(folder, 1), "utf8").split("\n")).toHaveLength(count - trail.missed + 1);
  });
});

describe("a full disk", () => {
  test("G28: fails no request: missed records are counted and logged once; then writing resumes", async () => {
    let full = false;
    const trail = await openTrail(
      disk(async (real, bytes) => {
        if (full) throw noSpace();
        return (await real.write(bytes)).bytesWritten;
      }),
    );
    await trail.note(record(1));
    full = true;
    for (const number of [2, 3, 4]) await trail.note(record(number));
    expect(trail.missed).toBe(3);
    expect(logged).toEqual([expect.stringMatching(/cannot be written.*no space left/)]);
    full = false;
    await trail.note(record(5));
    expect(await all(trail)).toEqual([5, 1]);
    expect(logged).toHaveLength(2);
    expect(logged[1]).toContain('written again {"missed":3}');
    await trail.close();
  });

  test("that accepts half of a write keeps the complete lines of it, and tears no other line", async () => {
    let room = Number.POSITIVE_INFINITY;
    const trail = await openTrail(
      disk(async (real, bytes) => {
        if (room === 0) throw noSpace();
        const { bytesWritten } = await real.write(bytes.subarray(0, Math.min(bytes.length, room)));
        room -= bytesWritten;
        return bytesWritten;
      }),
    );
    await trail.note(record(1));
    const line = statSync(auditFile(folder, 1)).size;
    // The first is written alone, the other three together: one of them fits, and half of another.
    room = line * 2.5;
    await Promise.all([2, 3, 4, 5].map((number) => trail.note(record(number))));
    expect(trail.missed).toBe(2);
    room = Number.POSITIVE_INFINITY;
    await trail.note(record(6));
    expect(await all(trail)).toEqual([6, 3, 2, 1]);
    await trail.close();
  });

  test("at the start does not prevent the start", async () => {
    let full = true;
    const trail = await openTrail({
      openFile: (where, number) => (full ? Promise.reject(noSpace()) : openAuditFile(where, number)),
    });
    await trail.note(record(1));
    full = false;
    await trail.note(record(2));
    expect([trail.missed, await all(trail)]).toEqual([1, [2]]);
    await trail.close();
    await trail.note(record(3));
    expect(trail.missed).toBe(2);
  });
});

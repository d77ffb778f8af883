import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fitsSocket } from "../http/transport/listener-socket.ts";
import { makeDataDir, openDataDir, readServer, removeServer, writeServer } from "./data-dir.ts";

let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "belay-home-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const note = { pid: 4711, url: "http://127.0.0.1:1", socket: "/s", startedAt: 12, version: "0.1.0", store: "/b.db" };

describe("where the home is", () => {
  test.each([
    [{ HOME: "/h" }, undefined, "/h/.local/state/belay"],
    [{ HOME: "/h", XDG_STATE_HOME: "/x" }, undefined, "/x/belay"],
    [{ HOME: "/h", XDG_STATE_HOME: "relative" }, undefined, "/h/.local/state/belay"],
    [{ HOME: "/h", XDG_STATE_HOME: "/x", BELAY_HOME: "/b" }, undefined, "/b"],
    [{ HOME: "/h", BELAY_HOME: "" }, undefined, "/h/.local/state/belay"],
    [{ HOME: "/h", BELAY_HOME: "/b" }, "/given", "/given"],
  ])("with %j and --home %s it is %s", (env, home, dir) => {
    expect(openDataDir({ home, env }).dir).toBe(dir);
  });

  test("without HOME there is one all the same", () => {
    expect(openDataDir({ env: {} }).dir).toMatch(/\/\.local\/state\/belay$/);
  });

  test("naming it makes nothing", () => {
    openDataDir({ home: join(folder, "unmade"), env: {} });
    expect(readdirSync(folder)).not.toContain("unmade");
  });
});

describe("the socket", () => {
  const deep = `/${"d".repeat(110)}`;

  test("is in the home if its path fits", () => {
    expect(openDataDir({ home: "/h", env: { XDG_RUNTIME_DIR: "/run/user/1" } }).socketFile).toBe("/h/belay.sock");
  });

  test("of a home that is too deep is in the runtime directory, and each home has its own", () => {
    const env = { XDG_RUNTIME_DIR: "/run/user/1" };
    const one = openDataDir({ home: deep, env }).socketFile ?? "";
    const other = openDataDir({ home: `${deep}/x`, env }).socketFile ?? "";
    expect(one).toMatch(/^\/run\/user\/1\/belay\/[\w-]{16}\.sock$/);
    expect(fitsSocket(one)).toBe(true);
    expect(other).not.toBe(one);
  });

  test("of a home that is too deep, without such a directory, is not known beforehand", () => {
    expect(openDataDir({ home: deep, env: {} }).socketFile).toBeUndefined();
  });
});

describe("making it", () => {
  test("G35: nobody else can look inside", () => {
    const home = openDataDir({ home: join(folder, "made"), env: {} });
    makeDataDir(home);
    expect(statSync(home.dir).mode & 0o777).toBe(0o700);
    makeDataDir(home);
    expect(statSync(home.dir).mode & 0o777).toBe(0o700);
  });

  test("a directory that others share is not closed to them: it is refused, and stays as it was", () => {
    const shared = join(folder, "shared");
    mkdirSync(shared);
    chmodSync(shared, 0o755);
    writeFileSync(join(shared, "theirs.txt"), "");
    expect(() => makeDataDir(openDataDir({ home: shared, env: {} }))).toThrow(/was there before/);
    expect(statSync(shared).mode & 0o777).toBe(0o755);
  });

  test("so is an empty one, and one that was a home before, until its owner closes it", () => {
    const home = openDataDir({ home: join(folder, "empty"), env: {} });
    mkdirSync(home.dir);
    for (const fill of [() => {}, () => writeFileSync(home.tokensFile, "")]) {
      fill();
      chmodSync(home.dir, 0o755);
      expect(() => makeDataDir(home)).toThrow(
        expect.objectContaining({ hint: expect.stringContaining(`chmod 700 ${home.dir}`) }),
      );
      expect(statSync(home.dir).mode & 0o777).toBe(0o755);
      chmodSync(home.dir, 0o700);
      makeDataDir(home);
    }
  });

  test.each([
    [0o777, "the world"],
    [0o1777, undefined],
    [0o775, process.getgid?.() === process.getuid?.() ? undefined : "a group"],
  ])("G35: one below a directory of mode %o is refused if %s may write there", (mode, writer) => {
    const above = mkdtempSync(join(folder, "above-"));
    const home = openDataDir({ home: join(above, "home"), env: {} });
    makeDataDir(home);
    chmodSync(above, mode);
    if (writer === undefined) makeDataDir(home);
    else expect(() => makeDataDir(home)).toThrow(/could replace/);
  });

  test.runIf(process.getuid?.() === 0)("G35: one below a directory that a group may write to (as root)", async () => {
    const { chownSync } = await import("node:fs");
    const above = mkdtempSync(join(folder, "above-"));
    const home = openDataDir({ home: join(above, "home"), env: {} });
    makeDataDir(home);
    chownSync(above, 0, 12_345);
    chmodSync(above, 0o770);
    expect(() => makeDataDir(home)).toThrow(/Others may write to/);
  });

  test("--home with nothing in it is refused, and is not the directory one happens to be in", () => {
    expect(() => openDataDir({ home: "", env: { BELAY_HOME: "/b" } })).toThrow(/--home names no directory/);
  });

  test.runIf(process.platform === "linux")(
    "a place that takes no directories is refused, and not tried for ever",
    () => {
      expect(() => makeDataDir(openDataDir({ home: "/proc/belay/home", env: {} }))).toThrow(
        /cannot be used as a directory/,
      );
    },
  );

  test("a file in its place is refused, and says what to do", () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    expect(() => makeDataDir(openDataDir({ home: file, env: {} }))).toThrow(/cannot be used as a directory/);
  });

  test.runIf(process.getuid?.() === 0)("G35: one below a directory of another user is refused (as root)", async () => {
    const { chownSync } = await import("node:fs");
    const above = join(folder, "theirs");
    mkdirSync(join(above, "ours"), { recursive: true, mode: 0o700 });
    chownSync(above, 12_345, 12_345);
    const dir = join(above, "ours");
    expect(() => makeDataDir(openDataDir({ home: dir, env: {} }))).toThrow(/could replace/);
  });

  test.runIf(process.getuid?.() === 0)("G35: one that belongs to another user is refused (as root)", async () => {
    const { chownSync } = await import("node:fs");
    const dir = join(folder, "foreign");
    mkdirSync(dir);
    chownSync(dir, 12_345, 12_345);
    expect(() => makeDataDir(openDataDir({ home: dir, env: {} }))).toThrow(/another user/);
  });
});

describe("the server's note", () => {
  const fresh = (name: string) => {
    const home = openDataDir({ home: join(folder, name), env: {} });
    makeDataDir(home);
    return home;
  };

  test("is read as it was written, and is nobody else's to read", () => {
    const home = fresh("note");
    writeServer(home, note);
    expect(readServer(home)).toEqual(note);
    expect(statSync(home.serverFile).mode & 0o777).toBe(0o600);
    expect(readdirSync(home.dir)).toEqual(["server.json"]);
  });

  test("G38: that was copied with its directory names no server; in one that was renamed it still does", () => {
    const home = fresh("original");
    writeServer(home, note);
    const copy = openDataDir({ home: join(folder, "copy"), env: {} });
    cpSync(home.dir, copy.dir, { recursive: true });
    expect(readServer(copy)).toBeUndefined();
    const moved = openDataDir({ home: join(folder, "moved"), env: {} });
    renameSync(home.dir, moved.dir);
    expect(readServer(moved)).toEqual(note);
  });

  test("is taken away by the server that wrote it, and by no other", () => {
    const home = fresh("removed");
    writeServer(home, note);
    removeServer(home, { ...note, startedAt: 13 });
    expect(readServer(home)).toEqual(note);
    removeServer(home, note);
    expect(readServer(home)).toBeUndefined();
  });

  test.each(["", "{", "[]", "null", '{"pid":"1"}', '{"pid":1.5,"startedAt":1,"version":"1"}', " ".repeat(70_000)])(
    "that is no note of ours names nobody: %j",
    (text) => {
      const home = fresh("garbage");
      writeFileSync(home.serverFile, text);
      expect(readServer(home)).toBeUndefined();
    },
  );
});

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

describe("the path of the data directory", () => {
  test.each([
    [{ HOME: "/h" }, undefined, "/h/.local/state/belay"],
    [{ HOME: "/h", XDG_STATE_HOME: "/x" }, undefined, "/x/belay"],
    [{ HOME: "/h", XDG_STATE_HOME: "relative" }, undefined, "/h/.local/state/belay"],
    [{ HOME: "/h", XDG_STATE_HOME: "/x", BELAY_HOME: "/b" }, undefined, "/b"],
    [{ HOME: "/h", BELAY_HOME: "" }, undefined, "/h/.local/state/belay"],
    [{ HOME: "/h", BELAY_HOME: "/b" }, "/given", "/given"],
  ])("with %j and --home %s is %s", (env, home, dir) => {
    expect(openDataDir({ home, env }).dir).toBe(dir);
  });

  test("exists without HOME too", () => {
    expect(openDataDir({ env: {} }).dir).toMatch(/\/\.local\/state\/belay$/);
  });

  test("is computed without creating anything", () => {
    openDataDir({ home: join(folder, "unmade"), env: {} });
    expect(readdirSync(folder)).not.toContain("unmade");
  });
});

describe("the socket", () => {
  const deep = `/${"d".repeat(110)}`;

  test("is in the data directory if its path is short enough", () => {
    expect(openDataDir({ home: "/h", env: { XDG_RUNTIME_DIR: "/run/user/1" } }).socketFile).toBe("/h/belay.sock");
  });

  test("of a deep data directory is in the runtime directory, a different one for each", () => {
    const env = { XDG_RUNTIME_DIR: "/run/user/1" };
    const one = openDataDir({ home: deep, env }).socketFile ?? "";
    const other = openDataDir({ home: `${deep}/x`, env }).socketFile ?? "";
    expect(one).toMatch(/^\/run\/user\/1\/belay\/[\w-]{16}\.sock$/);
    expect(fitsSocket(one)).toBe(true);
    expect(other).not.toBe(one);
  });

  test("of a deep data directory, without a runtime directory, has no fixed path", () => {
    expect(openDataDir({ home: deep, env: {} }).socketFile).toBeUndefined();
  });
});

describe("makeDataDir()", () => {
  test("G35: creates a directory that no other user can read", () => {
    const home = openDataDir({ home: join(folder, "made"), env: {} });
    makeDataDir(home);
    expect(statSync(home.dir).mode & 0o777).toBe(0o700);
    makeDataDir(home);
    expect(statSync(home.dir).mode & 0o777).toBe(0o700);
  });

  test("refuses a shared directory, and does not change it", () => {
    const shared = join(folder, "shared");
    mkdirSync(shared);
    chmodSync(shared, 0o755);
    writeFileSync(join(shared, "theirs.txt"), "");
    expect(() => makeDataDir(openDataDir({ home: shared, env: {} }))).toThrow(/existed before/);
    expect(statSync(shared).mode & 0o777).toBe(0o755);
  });

  test("refuses a shared directory that is empty, or was used before, until its owner makes it private", () => {
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
  ])("G35: refuses one below a directory of mode %o if %s may write there", (mode, writer) => {
    const above = mkdtempSync(join(folder, "above-"));
    const home = openDataDir({ home: join(above, "home"), env: {} });
    makeDataDir(home);
    chmodSync(above, mode);
    if (writer === undefined) makeDataDir(home);
    else expect(() => makeDataDir(home)).toThrow(/could replace/);
  });

  test.runIf(process.getuid?.() === 0)("G35: refuses one below a group-writable directory (as root)", async () => {
    const { chownSync } = await import("node:fs");
    const above = mkdtempSync(join(folder, "above-"));
    const home = openDataDir({ home: join(above, "home"), env: {} });
    makeDataDir(home);
    chownSync(above, 0, 12_345);
    chmodSync(above, 0o770);
    expect(() => makeDataDir(home)).toThrow(/Other users can write to/);
  });

  test("refuses an empty --home instead of using the current directory", () => {
    expect(() => openDataDir({ home: "", env: { BELAY_HOME: "/b" } })).toThrow(/--home must name a directory/);
  });

  test.runIf(process.platform === "linux")("refuses a path where no directory can be created, without looping", () => {
    expect(() => makeDataDir(openDataDir({ home: "/proc/belay/home", env: {} }))).toThrow(
      /cannot be used as a directory/,
    );
  });

  test("refuses a file at its path, with a hint", () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    expect(() => makeDataDir(openDataDir({ home: file, env: {} }))).toThrow(/cannot be used as a directory/);
  });

  test.runIf(process.getuid?.() === 0)("G35: refuses one below a directory of another user (as root)", async () => {
    const { chownSync } = await import("node:fs");
    const above = join(folder, "theirs");
    mkdirSync(join(above, "ours"), { recursive: true, mode: 0o700 });
    chownSync(above, 12_345, 12_345);
    const dir = join(above, "ours");
    expect(() => makeDataDir(openDataDir({ home: dir, env: {} }))).toThrow(/could replace/);
  });

  test.runIf(process.getuid?.() === 0)("G35: refuses one of another user (as root)", async () => {
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

  test("is read as it was written, and readable only by its user", () => {
    const home = fresh("note");
    writeServer(home, note);
    expect(readServer(home)).toEqual(note);
    expect(statSync(home.serverFile).mode & 0o777).toBe(0o600);
    expect(readdirSync(home.dir)).toEqual(["server.json"]);
  });

  test("G38: is ignored if it was copied with its directory, and valid if the directory was renamed", () => {
    const home = fresh("original");
    writeServer(home, note);
    const copy = openDataDir({ home: join(folder, "copy"), env: {} });
    cpSync(home.dir, copy.dir, { recursive: true });
    expect(readServer(copy)).toBeUndefined();
    const moved = openDataDir({ home: join(folder, "moved"), env: {} });
    renameSync(home.dir, moved.dir);
    expect(readServer(moved)).toEqual(note);
  });

  test("is removed by the server that wrote it, and by no other", () => {
    const home = fresh("removed");
    writeServer(home, note);
    removeServer(home, { ...note, startedAt: 13 });
    expect(readServer(home)).toEqual(note);
    removeServer(home, note);
    expect(readServer(home)).toBeUndefined();
  });

  test.each(["", "{", "[]", "null", '{"pid":"1"}', '{"pid":1.5,"startedAt":1,"version":"1"}', " ".repeat(70_000)])(
    "is ignored if it is invalid: %j",
    (text) => {
      const home = fresh("garbage");
      writeFileSync(home.serverFile, text);
      expect(readServer(home)).toBeUndefined();
    },
  );
});

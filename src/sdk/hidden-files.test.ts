import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HiddenFiles } from "./hidden-files.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belay-hidden-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("G38: files that the store may need exist before a command starts, and are removed at close", () => {
  const store = join(folder, "belay.db");
  const hidden = new HiddenFiles(store, ["/etc/secret"]);
  expect(hidden.list()).toEqual(expect.arrayContaining(["/etc/secret", store, `${store}-journal`]));
  expect(existsSync(`${store}-journal`)).toBe(true);
  writeFileSync(`${store}.mark`, "written by the store since");
  hidden.close();
  expect(existsSync(`${store}-journal`)).toBe(false);
  expect(existsSync(`${store}.mark`)).toBe(true);
});

test("G38: links on the way to hidden paths are reported, because a command can replace them", () => {
  const real = join(realpathSync(folder), "real");
  const link = join(realpathSync(folder), "link");
  mkdirSync(join(real, "tokens"), { recursive: true });
  expect(new HiddenFiles(":memory:", [join(real, "tokens")]).linkNotice()).toBeUndefined();
  symlinkSync(real, link);
  const notice = new HiddenFiles(":memory:", [join(link, "tokens"), join(link, "missing")]).linkNotice();
  expect(notice).toContain(`replace the link ${link}`);
  expect(notice).toContain(join(real, "tokens"));
  // The store is opened by its real path, but clients look for it by its given path.
  expect(new HiddenFiles(join(link, "belay.db"), []).linkNotice()).toContain(`replace the link ${link}`);
});

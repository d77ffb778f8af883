import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HiddenFiles } from "./hidden-files.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belay-hidden-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("G38: names that the store may need are occupied before a command starts, and free again at the close", () => {
  const store = join(folder, "belay.db");
  const hidden = new HiddenFiles(store, ["/etc/secret"]);
  expect(hidden.list()).toEqual(expect.arrayContaining(["/etc/secret", store, `${store}-journal`]));
  expect(existsSync(`${store}-journal`)).toBe(true);
  writeFileSync(`${store}.mark`, "written by the store since");
  hidden.close();
  expect(existsSync(`${store}-journal`)).toBe(false);
  expect(existsSync(`${store}.mark`)).toBe(true);
});

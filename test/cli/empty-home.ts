// A home for one test: made, empty, and gone when the test has ended.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Home, makeHome, openHome } from "../../src/cli/home.ts";

export function emptyHome(name = "home"): Home {
  const dir = mkdtempSync(join(tmpdir(), "belay-home-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const home = openHome({ home: join(dir, name), env: {} });
  makeHome(home);
  return home;
}

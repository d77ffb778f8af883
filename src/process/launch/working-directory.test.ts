import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { checkSessionDirectory, checkWorkingDirectory, isWithin } from "./working-directory.ts";

let above: string;
let workspace: string;

beforeEach(() => {
  above = realpathSync(mkdtempSync(join(tmpdir(), "belay-cwd-test-")));
  chmodSync(above, 0o755);
  workspace = join(above, "space");
  mkdirSync(join(workspace, "in", "deep"), { recursive: true });
  mkdirSync(join(above, "space-2"));
  writeFileSync(join(workspace, "file"), "");
  symlinkSync(above, join(workspace, "out"));
  symlinkSync(join(above, "space-2"), join(workspace, "sideways"));
  symlinkSync("in", join(workspace, "link"));
  symlinkSync("loop", join(workspace, "loop"));
  symlinkSync(workspace, join(above, "alias"));
});

afterEach(() => rmSync(above, { recursive: true, force: true }));

test("the default is the workspace", async () => {
  expect(await checkWorkingDirectory(undefined, workspace)).toBe(workspace);
  expect(await checkWorkingDirectory("", workspace)).toBe(workspace);
  expect(await checkWorkingDirectory(".", workspace)).toBe(workspace);
});

test("a directory below the workspace is allowed by any path, and becomes its real path", async () => {
  const deep = join(workspace, "in", "deep");
  expect(await checkWorkingDirectory("in/deep", workspace)).toBe(deep);
  expect(await checkWorkingDirectory(deep, workspace)).toBe(deep);
  expect(await checkWorkingDirectory("link/deep", workspace)).toBe(deep);
  expect(await checkWorkingDirectory("in/../in/deep/", workspace)).toBe(deep);
});

test("a workspace that is reached by a link is the same workspace", async () => {
  expect(await checkWorkingDirectory("in", join(above, "alias"))).toBe(join(workspace, "in"));
  expect(await checkWorkingDirectory(join(above, "alias", "in"), workspace)).toBe(join(workspace, "in"));
});

test.each([
  ["..", "outside"],
  ["../space-2", "outside"],
  ["/", "outside"],
  ["out", "outside"],
  ["out/space-2", "outside"],
  ["sideways", "outside"],
  ["in/../..", "outside"],
  ["nowhere", "does not exist"],
  ["file", "is not a directory"],
  ["file/x", "is not a directory"],
  ["loop", "leads back to itself"],
  ["a\0b", "NUL"],
  ["x".repeat(300), "longer than a name"],
  ["x/".repeat(3000), "a path has less than 4096"],
])("%# %s is refused with the reason", async (cwd, why) => {
  await expect(checkWorkingDirectory(cwd, workspace)).rejects.toMatchObject({
    ...{ code: "invalid", message: expect.stringContaining(why) },
  });
});

test("a refusal has a hint, and quotes a long path in short", async () => {
  const { hint } = new ControlError("invalid", "any");
  const long = `${"x/".repeat(150)}y`;
  const rows: readonly (readonly [string, string, string])[] = [
    [
      "nowhere",
      'The working directory "nowhere" does not exist.',
      "Create it first, or leave it out to begin in the workspace.",
    ],
    [
      "..",
      `The working directory ".." is outside of the workspace "${workspace}".`,
      "Use a directory of the workspace.",
    ],
    ["a\0b", 'The working directory "a\\u0000b" holds a NUL byte, which would end it there.', hint],
    [
      long,
      `The working directory "${long.slice(0, 200)}…" does not exist.`,
      "Create it first, or leave it out to begin in the workspace.",
    ],
  ];
  for (const [cwd, message, todo] of rows) {
    await expect(checkWorkingDirectory(cwd, workspace)).rejects.toMatchObject({ message, hint: todo });
  }
  const exact = "x".repeat(200);
  await expect(checkWorkingDirectory(exact, workspace)).rejects.toThrow(`"${exact}" does not exist`);
  const most = `${"x/".repeat(2047)}x`;
  await expect(checkWorkingDirectory(most, workspace)).rejects.toThrow("does not exist");
  await expect(checkWorkingDirectory(`${most}y`, workspace)).rejects.toThrow(
    "has 4096 bytes; a path has less than 4096",
  );
});

test("a directory that may not be entered is refused, and so is a missing workspace", {
  meta: { id: "process/closed-directory-refused" },
}, async () => {
  chmodSync(join(workspace, "in"), 0o600);
  const asAnother = process.getuid?.() === 0;
  if (asAnother) process.seteuid?.(65_534);
  try {
    for (const cwd of ["in", "in/deep"]) {
      await expect(checkWorkingDirectory(cwd, workspace)).rejects.toThrow(/is not accessible/);
    }
  } finally {
    if (asAnother) process.seteuid?.(0);
    chmodSync(join(workspace, "in"), 0o755);
  }
  await expect(checkWorkingDirectory("in", join(above, "gone"))).rejects.toThrow("The workspace does not exist");
});

test("G35: the directory of a session must still be a real path, and not a link in its place", async () => {
  const deep = join(workspace, "in", "deep");
  expect(await checkSessionDirectory(deep)).toBe(deep);
  rmSync(deep, { recursive: true });
  await expect(checkSessionDirectory(deep)).rejects.toMatchObject({ code: "invalid" });
  symlinkSync(above, deep);
  await expect(checkSessionDirectory(deep)).rejects.toMatchObject({
    ...{ code: "invalid", message: expect.stringContaining("a link in its place") },
  });
  rmSync(join(workspace, "in"), { recursive: true });
  symlinkSync(above, join(workspace, "in"));
  mkdirSync(join(above, "deep"));
  await expect(checkSessionDirectory(deep)).rejects.toThrow("a link in its place");
});

test.each([
  ["/a", "/a", true],
  ["/a", "/a/b", true],
  ["/a", "/ab", false],
  ["/a", "/a/..b", true],
  ["/a/b", "/a", false],
  ["/", "/x", true],
])(
  "whether %s contains %s is decided by whole names: %s",
  { meta: { id: "process/paths-compared-by-names" } },
  (directory, path, within) => {
    expect(isWithin(directory, path)).toBe(within);
  },
);

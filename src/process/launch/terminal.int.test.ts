import { spawn } from "node:child_process";
import { expect, onTestFinished, test } from "vitest";
import { checkSize, inTerminal, resizeTerminal } from "./terminal.ts";

test.each([
  [1, 1],
  [1_000, 1_000],
  [80, 24],
])("a terminal of %s columns and %s rows is valid", (columns, rows) => {
  expect(() => checkSize({ columns, rows })).not.toThrow();
});

test.each([
  ["columns", { columns: 0, rows: 1 }, 0],
  ["columns", { columns: 1_001, rows: 1 }, 1_001],
  ["rows", { columns: 1, rows: 0 }, 0],
  ["rows", { columns: 1, rows: 1_001 }, 1_001],
  ["rows", { columns: 1, rows: 1.5 }, 1.5],
  ["rows", { columns: 1, rows: Number.NaN }, Number.NaN],
])("a terminal size is limited: %s of %o", async (name, size, value) => {
  const refusal = { code: "invalid", message: `A terminal has from 1 to 1000 ${name}, not ${value}.` };
  expect(() => checkSize(size)).toThrow(expect.objectContaining(refusal));
  expect(() => inTerminal(["/bin/true"], size, "/usr/bin/script")).toThrow(expect.objectContaining(refusal));
  await expect(resizeTerminal(process.pid, size, "/bin/stty")).rejects.toMatchObject(refusal);
});

test("a command at a terminal is wrapped in `script`, with the size set first and each argument unchanged", () => {
  const argv = inTerminal(["/bin/echo", "a b", "$HOME"], { columns: 91, rows: 17 }, "/usr/bin/script");
  const shell = "stty cols 91 rows 17 2>/dev/null; exec /bin/echo 'a b' '$HOME'";
  expect(argv).toEqual(["/usr/bin/script", "-q", "-e", "-f", "-c", shell, "/dev/null"]);
});

test("without `script` there is no terminal, and the hint names the package", () => {
  expect(() => inTerminal(["/bin/true"], { columns: 80, rows: 24 }, undefined)).toThrow(
    expect.objectContaining({ code: "not_started", hint: expect.stringContaining("apt-get install bsdutils") }),
  );
});

test("a terminal that is gone or unreachable cannot be resized", async () => {
  const size = { columns: 80, rows: 24 };
  const unused = 4_194_304 + 1;
  const message = "The terminal of this process is gone, or cannot be reached.";
  await expect(resizeTerminal(unused, size, "/bin/stty")).rejects.toMatchObject({ code: "closed", message });
  await expect(resizeTerminal(process.pid, size, undefined)).rejects.toMatchObject({ code: "closed", message });
});

test("a size that could not be set is reported, with the error of stty as cause", async () => {
  const child = spawn("sleep", ["8000711"], { stdio: "ignore" });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const size = { columns: 80, rows: 24 };
  await expect(resizeTerminal(process.pid, size, "/bin/true")).resolves.toBeUndefined();
  await expect(resizeTerminal(process.pid, size, "/bin/false")).rejects.toMatchObject({
    ...{ code: "closed", message: "The terminal of this process is gone." },
    cause: expect.objectContaining({ code: 1 }),
  });
});

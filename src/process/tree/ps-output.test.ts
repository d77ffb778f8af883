import { describe, expect, test } from "vitest";
import { parseBoot, parseTable, psArguments, type Row, startText } from "./ps-output.ts";

/**
 * The format of `ps -axEww -o pid= -o ppid= -o pgid= -o stat= -o lstart= -o command=` on macOS, written from its manual
 * and its source, not recorded on a Mac.
 */
const MACOS = `    1     0     1 Ss   Thu Nov  5 08:00:01 2026     /sbin/launchd
  415     1   415 S    Thu Nov  5 08:00:40 2026     /usr/libexec/secd
 8123   415  8123 Ss+  Sun Nov 15 09:44:09 2026     -zsh TERM=xterm-256color
 8200  8123  8200 S+   Sun Nov 15 09:45:10 2026     node server.js LANG=C BELAY_PROCESS=proc_a.1:xyz PATH=/usr/bin
 8201  8200  8201 U    Sun Nov 15 09:45:11 2026     sh -c sleep 1 BELAY_PROCESS=proc_a.1:xyz proc_b.2:Q-_9 TMPDIR=/tmp
 8202  8201  8201 Z    -                            (sleep)
 8203  8201  8201 T    Sun Nov 15 09:45:12 2026     (find)
`;

describe("the table of macOS", () => {
  const row = (pid: number): Row | undefined => parseTable(MACOS).get(pid);

  test("has all processes, with parent, group and state", () => {
    expect([...parseTable(MACOS).keys()]).toEqual([1, 415, 8123, 8200, 8201, 8202, 8203]);
    expect(row(8203)).toMatchObject({ parent: 8201, group: 8201, state: "T", session: 0 });
    expect(row(8123)).toEqual({
      ...{ pid: 8123, parent: 415, group: 8123, session: 0, state: "S", startTime: 20261115094409 },
      ...{ threads: 1, kernel: false, cookies: [] },
    });
  });

  test("has start times in seconds, and none for a dead process", () => {
    expect(row(1)?.startTime).toBe(20261105080001);
    expect(row(8202)).toMatchObject({ state: "Z", startTime: 0 });
  });

  test("has cookies: all of a value that contains several, and nothing of what follows", () => {
    expect(row(8200)?.cookies).toEqual(["proc_a.1:xyz"]);
    expect(row(8201)?.cookies).toEqual(["proc_a.1:xyz", "proc_b.2:Q-_9"]);
  });

  test("has as many cookies as allowed, and those of a program without arguments", () => {
    const many = Array.from({ length: 9 }, (_, index) => `proc_a.${index}:x`);
    const [line] = MACOS.split("/sbin");
    const marked = `${line}BELAY_PROCESS=${many.join(" ")}`;
    expect(parseTable(marked).get(1)?.cookies).toEqual(many.slice(0, 8));
    expect(parseTable(`${line}sh X=BELAY_PROCESS=proc_a.1:x BELAY_PROCESS=proc_b.1:y`).get(1)?.cookies).toEqual([
      "proc_b.1:y",
    ]);
  });

  test("is requested with the options of each platform", () => {
    expect(psArguments("macos", { cookies: true }).join(" ")).toBe(
      "-axEww -o pid= -o ppid= -o pgid= -o stat= -o lstart= -o command=",
    );
    expect(psArguments("linux", { cookies: false }).join(" ")).toBe(
      "axww -o pid= -o ppid= -o pgid= -o stat= -o lstart=",
    );
  });
});

describe("invalid output", () => {
  const line = "  7 1 7 S Sun Nov 15 09:44:09 2026 sleep";

  test.each([
    ["nothing", ""],
    ["a complaint", "ps: illegal option -- E\n"],
    ["a line that was cut off", `${line}\n  8 1 8 S Sun Nov`],
  ])("is rejected: %s", (_, text) => {
    expect(() => parseTable(text)).toThrow(/^ps printed/);
  });

  test("is quoted up to 80 characters; empty lines are ignored", () => {
    expect([...parseTable(`\n   \n${line}\n \n`).keys()]).toEqual([7]);
    expect(() => parseTable("x".repeat(200))).toThrow(/: x{80}$/);
  });

  test("G21: a duplicate pid, forged with a newline in arguments, gets no cookie", () => {
    const forged = "  7 1 7 S Sun Nov 15 09:44:09 2026 x BELAY_PROCESS=proc_a.1:xyz";
    expect(parseTable(`${line}\n${forged}\n`).get(7)?.cookies).toEqual([]);
    expect(parseTable(`${forged}\n${line}\n`).get(7)?.cookies).toEqual([]);
  });

  test("only the value of the cookie variable itself counts as a cookie", () => {
    const texts = ["NOT_BELAY_PROCESS=proc_a.1:x", "BELAY_PROCESS=", "BELAY_PROCESS=hello proc_a.1:x", "proc_a.1:x"];
    for (const text of texts) expect(parseTable(`${line} ${text}\n`).get(7)?.cookies).toEqual([]);
  });
});

test("`startText` formats a start time as ps does", () => {
  expect(startText(20261105080001)).toBe("Nov_5_08:00:01_2026");
});

test("`parseBoot` reads the UUID of a macOS boot, or the boot time on older versions", () => {
  expect(parseBoot("0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0\n")).toBe("0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0");
  expect(parseBoot("{ sec = 1794643200, usec = 415000 } Thu Nov  5 08:00:00 2026\n")).toBe("1794643200");
  expect(parseBoot("  { sec = 7, usec = 0 } Thu\n")).toBe("7");
  const others = [
    "",
    "x{ sec = 7, usec = 0 }",
    "name 0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0",
    "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0x",
  ];
  expect(others.map(parseBoot)).toEqual(others.map(() => undefined));
});

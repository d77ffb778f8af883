// A contained child cannot see, harm or exhaust the server.
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { CommandLine, ProcessResult, StartOptions } from "../../src/ports/spawner.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import type { ProcessesOptions } from "../../src/sdk/open-spawner.ts";
import { here } from "../fixtures/mechanisms-here.ts";

const SECRET = "hunter2-canary";
process.env.BELAY_TEST_API_KEY = SECRET;
const dir = mkdtempSync(join(tmpdir(), "belay-safety-"));
const workspace = join(dir, "workspace");
mkdirSync(workspace);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const mechanisms = here();

async function opened(processes: ProcessesOptions, use: (belay: Belay) => Promise<void>): Promise<void> {
  const belay = await openBelay({ agent: () => "done", store: ":memory:", processes: { workspace, ...processes } });
  try {
    await use(belay);
  } finally {
    await belay.close({ mode: "cancel" });
  }
}

interface CommandResult extends ProcessResult {
  readonly text: string;
}

async function runCommand(belay: Belay, command: CommandLine, options: StartOptions = {}): Promise<CommandResult> {
  const session = await belay.createSession();
  const child = await session.processes.start(command, { feedback: "silent", ...options });
  const result = await child.wait();
  if (result === undefined) throw new Error("It has no end.");
  return { ...result, text: (await (await child.output())?.read())?.text ?? "" };
}

describe.each(mechanisms)("a child held by %s", (mechanism) => {
  test("G35: inherits no secret, and is not prompted", {
    meta: { id: "G35/child-inherits-no-secret" },
  }, async () => {
    await opened({ mechanism }, async (belay) => {
      const { text } = await runCommand(belay, "env; cat");
      expect(text).not.toContain(SECRET);
      expect(text).toMatch(/^PATH=/m);
      expect(text).toMatch(/^GIT_TERMINAL_PROMPT=0$/m);
      expect(text).toMatch(/^PAGER=cat$/m);
    });
  });

  test("G35: gets the named variables, and none with similar names", async () => {
    process.env.BELAY_TEST_COLOUR = "teal";
    await opened({ mechanism, env: { allow: ["BELAY_TEST_COLOUR"] } }, async (belay) => {
      const { text } = await runCommand(belay, "env", { env: { GREETING: "hello world" } });
      expect(text).toMatch(/^BELAY_TEST_COLOUR=teal$/m);
      expect(text).toMatch(/^GREETING=hello world$/m);
      expect(text).not.toContain(SECRET);
    });
  });

  test("G23: a daemon that keeps the pipe open delays nothing", {
    meta: { id: "G23/open-pipe-delays-nothing" },
  }, async () => {
    await opened({ mechanism }, async (belay) => {
      const { text, exit } = await runCommand(belay, "(setsid sleep 600 &) ; echo done");
      expect([text, exit]).toEqual(["done\n", { code: 0 }]);
    });
  });

  test("inherits no file of the server, and one socket: the liveness pipe", {
    meta: { id: "G38/no-inherited-files" },
  }, async () => {
    const secrets = join(dir, "held-open-by-the-server");
    writeFileSync(secrets, SECRET);
    const file = await open(secrets);
    await opened({ mechanism }, async (belay) => {
      const { text } = await runCommand(belay, "ls -l /proc/self/fd");
      expect(text).not.toContain("held-open");
      expect(text.match(/socket:/g)).toHaveLength(1);
    });
    await file.close();
  });
});

const contained = mechanisms.filter((one) => one === "bubblewrap" || one === "unshare");

describe.each(contained)("a child in a namespace, by %s", (mechanism) => {
  test("G35: cannot read the server's environment, nor even see the server", {
    meta: { id: "G38/server-invisible-to-command" },
  }, async () => {
    await opened({ mechanism }, async (belay) => {
      const environs = `cat /proc/[0-9]*/environ /proc/${process.pid}/environ | tr '\\0' '\\n'`;
      const look = `${environs}; ls /proc | grep -c '^[0-9]'`;
      const { text } = await runCommand(belay, look);
      expect(text).not.toContain(SECRET);
      expect(Number(text.trim().split("\n").at(-1))).toBeLessThan(12);
    });
  });

  test("G21: cannot signal the server", { meta: { id: "G38/command-cannot-signal-server" } }, async () => {
    await opened({ mechanism }, async (belay) => {
      const { text } = await runCommand(belay, `kill -0 ${process.pid} && echo reached; kill -9 -1; echo here`);
      expect(text).not.toContain("reached");
    });
  });

  test("a fork storm is contained: other processes still start, and a cancel ends all of it", {
    meta: { id: "process/fork-storm-contained" },
  }, async () => {
    await opened({ mechanism, limits: { processesMax: 320 } }, async (belay) => {
      const session = await belay.createSession();
      const storm = "bomb() { sleep 600 & bomb; }; (bomb) 2>/dev/null; echo full; exec sleep 600";
      const child = await session.processes.start(storm, { feedback: "silent" });
      for await (const page of child.follow()) if (page.text.includes("full")) break;
      const other = await runCommand(belay, "echo fine");
      expect(other.text).toBe("fine\n");
      const receipt = await belay.cancel(child.id);
      expect(receipt).toMatchObject({ ended: { kind: "settled", outcome: { kind: "cancelled" } } });
      expect((await child.wait())?.escaped).toBeUndefined();
    });
  });
});

describe.runIf(mechanisms.includes("bubblewrap"))("the profile `workspace`", () => {
  const profile = { mechanism: "bubblewrap", profile: "workspace" } as const;

  test("writes to the workspace and to its own /tmp, and to nothing else", async () => {
    await opened(profile, async (belay) => {
      const write = (path: string): string => `(echo x > ${path}) 2>/dev/null && echo wrote ${path};`;
      const places = ["./file", "/tmp/file", "/etc/file", "/usr/file"];
      expect((await runCommand(belay, places.map(write).join(" "))).text).toBe("wrote ./file\nwrote /tmp/file\n");
      expect(existsSync("/tmp/file")).toBe(false);
      expect(readFileSync(join(workspace, "file"), "utf8")).toBe("x\n");
    });
  });

  test("has no network, and does not see the user's credentials", async () => {
    mkdirSync(join(homedir(), ".aws"), { recursive: true });
    const canary = join(homedir(), ".aws", `belay-canary-${process.pid}`);
    writeFileSync(canary, SECRET);
    try {
      await opened(profile, async (belay) => {
        const { text } = await runCommand(
          belay,
          `ls /sys/class/net /proc/net/dev; tail -n +3 /proc/net/dev | grep -v lo: ; cat ${canary}`,
        );
        expect(text).not.toContain(SECRET);
        const { text: interfaces } = await runCommand(belay, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '");
        expect(interfaces).toBe("lo\n");
      });
    } finally {
      rmSync(canary);
    }
  });
});

describe.runIf(mechanisms.includes("bubblewrap"))("sockets in the profile `workspace`", () => {
  const asks = (family: number): string =>
    `perl -e 'socket(my $s, ${family}, 1, 0) ? print "made" : print "refused: $!"'`;

  test.each([
    ["AF_VSOCK, which leads out of a network namespace", 40, /^refused: Address family not supported/],
    ["AF_ALG, which no network namespace covers", 38, /^refused: Address family not supported/],
    ["AF_UNIX", 1, /^made$/],
    ["AF_INET", 2, /^made$/],
  ])("G38: %s", async (_, family, expected) => {
    await opened({ mechanism: "bubblewrap", profile: "workspace" }, async (belay) => {
      expect((await runCommand(belay, asks(family))).text).toMatch(expected);
      expect((await runCommand(belay, "perl -e 'print syscall(425, 1, 0), \" $!\"'")).text).toContain(
        "not implemented",
      );
    });
  });
});

describe("the working directory of a command", () => {
  test("must be inside the workspace, by whatever name", {
    meta: { id: "process/start-outside-workspace-refused" },
  }, async () => {
    mkdirSync(join(dir, "workspace-sibling"), { recursive: true });
    symlinkSync(dir, join(workspace, "way-out"));
    await opened({}, async (belay) => {
      const session = await belay.createSession();
      for (const cwd of ["..", "/", join(dir, "workspace-sibling"), "way-out", "no-such-place"]) {
        await expect(session.processes.start("pwd", { cwd })).rejects.toMatchObject({ code: "invalid" });
      }
      mkdirSync(join(workspace, "inside"), { recursive: true });
      expect((await runCommand(belay, "pwd -P", { cwd: "inside" })).text).toMatch(/\/workspace\/inside\n$/);
    });
  });
});

describe("limits", () => {
  test("a file that grows too large, and a child that takes too much time, are ended by the kernel", {
    meta: { id: "process/kernel-limits-enforced" },
  }, async () => {
    await opened({}, async (belay) => {
      const big = await runCommand(belay, "exec head -c 100000000 /dev/zero > big", {
        limits: { fileBytesMax: 1_000_000 },
      });
      expect(big.exit).not.toEqual({ code: 0 });
      const long = await runCommand(belay, "exec sh -c 'while :; do :; done'", { limits: { cpuSecondsMax: 1 } });
      expect(long.exit?.signal ?? long.exit?.code).not.toBe(0);
    });
  });

  test("output beyond its limit is counted and not kept, except its end", {
    meta: { id: "G23/output-limit-exact-counts" },
  }, async () => {
    await opened({}, async (belay) => {
      const session = await belay.createSession();
      const command = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end";
      const child = await session.processes.start(command, {
        feedback: "silent",
        limits: { outputBytesMax: 1_000_000 },
      });
      await child.wait();
      const output = await child.output();
      expect(output?.counts).toMatchObject({ bytes: { all: 3_000_009 }, kept: { all: 1_000_000 }, lines: 2 });
      expect(output?.excerpt().tail).toMatch(/the end\n$/);
    });
  });
});

describe("G20: a required tier", () => {
  test("is refused where it is missing, with the available tier and the exact fix", async () => {
    const refused = openBelay({
      agent: () => "done",
      store: ":memory:",
      processes: { workspace, mechanism: "group", requireTier: "namespace" },
    });
    await expect(refused).rejects.toMatchObject({
      code: "uncontained",
      message: expect.stringMatching(/group/),
      hint: expect.stringMatching(/./),
    });
  });

  test("is shown on each process", async () => {
    await opened({ requireTier: "group" }, async (belay) => {
      const session = await belay.createSession();
      const child = await session.processes.start("sleep 600");
      expect(child.info).toMatchObject({
        tier: expect.any(String),
        mechanism: expect.any(String),
        pid: expect.any(Number),
      });
    });
  });
});

/** A complete test, where a mechanism can hide files. */
describe.each(mechanisms.filter((one) => one === "bubblewrap"))("paths hidden from a child of %s", (mechanism) => {
  test.each(["none", "contain", "workspace"] as const)("G35: are not visible in the profile %s", async (profile) => {
    const token = join(dir, "token");
    const socket = join(dir, "belay.sock");
    const folder = join(dir, "audit");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "one"), SECRET);
    writeFileSync(token, SECRET);
    const listener = createServer().listen(socket);
    await once(listener, "listening");
    try {
      await opened({ mechanism, profile, hidden: [token, socket, folder, join(dir, "absent")] }, async (belay) => {
        const probe = ["exec 2>/dev/null", `cat ${token}`, `ls ${folder}`, `test -S ${socket} && echo a socket`];
        const { text } = await runCommand(belay, [...probe, "echo over"].join("; "));
        expect(text).toBe("over\n");
      });
    } finally {
      listener.close();
    }
  });
});

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Child, SpawnRequest } from "../../ports/spawner.ts";
import { systemClock } from "../../system/system-clock.ts";
import { type OpenSpawner, openSpawner } from "../spawner.ts";
import { descendantsOf } from "../tree/proc.ts";
import { lookAtMachine } from "./machine.ts";

const { programs, capsPerNamespace, root } = lookAtMachine();
const home = realpathSync(mkdtempSync(join(tmpdir(), "belay-profile-")));
const workspace = join(home, "workspace");
const dir = join(workspace, ".belay");
let count = 0;

function request(command: string, more: Partial<SpawnRequest> = {}): SpawnRequest {
  count += 1;
  return { id: `proc_profile.${count}`, sessionId: "ses_profile", command, ...more };
}

async function run(spawner: OpenSpawner, command: string, more: Partial<SpawnRequest> = {}): Promise<string> {
  const child = await spawner.spawn(request(command, more));
  await child.ended;
  return child.output.excerpt({ bytesMax: 64 * 1024 }).head;
}

async function says(child: Child, words: string): Promise<void> {
  let text = "";
  for await (const page of child.output.follow()) {
    text += page.text;
    if (text.includes(words)) return;
  }
}

/** From `linux/capability.h`: dac_read_search, sys_module, sys_rawio, sys_ptrace, sys_admin, mknod. */
const UNDOING_BITS = [2n, 16n, 17n, 19n, 21n, 27n] as const;

mkdirSync(workspace);
afterAll(() => rmSync(home, { recursive: true, force: true }));

describe.skipIf(programs.bwrap === undefined)("the profile workspace (where bubblewrap is installed)", () => {
  let spawner: OpenSpawner;

  beforeAll(async () => {
    spawner = await openSpawner({ dir, workspace, clock: systemClock, mechanism: "bubblewrap", profile: "workspace" });
  });
  afterAll(() => spawner.close());

  test("writes to the workspace, and to nothing else", {
    meta: { id: "process/workspace-profile-write-scope" },
  }, async () => {
    writeFileSync(join(home, "beside"), "as it was");
    const paths = [join(home, "beside"), join(homedir(), "belay-must-not-be-here"), "/etc/belay-must-not-be-here"];
    const out = await run(spawner, `echo in > inside; for path in ${paths.join(" ")}; do echo out > $path; done`);
    expect(readFileSync(join(workspace, "inside"), "utf8")).toBe("in\n");
    expect(existsSync(paths[1] ?? "")).toBe(false);
    expect(existsSync(paths[2] ?? "")).toBe(false);
    expect(readFileSync(join(home, "beside"), "utf8")).toBe("as it was");
    expect(out).toContain("Read-only file system");
  });

  test("writes to the directory of its session instead, if that has one, and then not to the workspace", async () => {
    const project = mkdtempSync(join(home, "project-"));
    const write = `pwd; echo in > inside-too; echo out > ${join(workspace, "not-mine")}`;
    const out = await run(spawner, write, { workspace: project });
    expect(out.split("\n")[0]).toBe(project);
    expect(readFileSync(join(project, "inside-too"), "utf8")).toBe("in\n");
    expect(existsSync(join(workspace, "not-mine"))).toBe(false);
    mkdirSync(join(project, "deep"));
    expect(await run(spawner, "pwd", { workspace: project, cwd: "deep" })).toBe(`${join(project, "deep")}\n`);
    await expect(run(spawner, "pwd", { workspace: project, cwd: workspace })).rejects.toMatchObject({
      code: "invalid",
    });
  });

  test("has its own temporary directory, which is gone with it", async () => {
    expect(await run(spawner, 'echo x > "$TMPDIR/belay-own"; cat /tmp/belay-own')).toBe("x\n");
    expect(existsSync("/tmp/belay-own")).toBe(false);
    expect(await run(spawner, "cat /tmp/belay-own || echo none")).toContain("none");
  });

  test("reaches no network, not even this machine", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" ? address?.port : 0;
    const connect = `const s = require("net").connect(${port}, "127.0.0.1")`;
    const heard = 's.on("connect", () => console.log("connected")).on("error", (e) => console.log("refused", e.code))';
    const script = `${connect}; ${heard}`;
    // A copy: the original may be in a place that the profile replaces.
    const node = join(workspace, "node");
    copyFileSync(process.execPath, node);
    const out = await run(spawner, `'${node}' -e '${script}'`);
    rmSync(node);
    server.close();
    expect(out).toMatch(/^refused /);
  });

  test("G35: does not see Belay's own directory", async () => {
    expect(existsSync(join(dir, "ledger"))).toBe(true);
    expect(await run(spawner, "ls -A .belay; echo listed")).toBe("listed\n");
  });

  test("may have a terminal", async () => {
    expect(await run(spawner, "stty size; touch /etc/x", { terminal: { columns: 33, rows: 22 } })).toMatch(
      /^22 33\r\n/,
    );
  });

  test("drops every capability, including root's to mount and to change kernel settings", async () => {
    const tries = "mount -o remount,rw / ; echo 1 > /proc/sys/kernel/pid_max; echo x > /proc/sys/kernel/core_pattern";
    const out = await run(spawner, `grep CapEff /proc/self/status; ${tries}; echo tried`);
    expect(out).toMatch(/CapEff:\s0{16}/);
    expect(out).toContain("tried");
    expect(out).toMatch(/pid_max: (Read-only|Permission)/);
    expect(out).toMatch(/core_pattern: (Read-only|Permission)/);
  });
});

describe.skipIf(programs.bwrap === undefined)("limits (where bubblewrap is installed)", () => {
  let spawner: OpenSpawner;

  beforeAll(async () => {
    spawner = await openSpawner({ dir, workspace, clock: systemClock, mechanism: "bubblewrap" });
  });
  afterAll(() => spawner.close());

  test("a file does not grow beyond its limit", async () => {
    const limits = { fileBytesMax: 1024 * 1024 };
    const out = await run(spawner, "head -c 3000000 /dev/zero > big; wc -c < big", { limits });
    expect(out).toMatch(/^1048576$/m);
  });

  test("memory is refused beyond its limit", { meta: { id: "process/memory-limit-enforced" } }, async () => {
    const limits = { memoryBytesMax: 64 * 1024 * 1024 };
    const out = await run(spawner, "head -c 200000000 /dev/zero | tail | wc -c", { limits });
    expect(out).toMatch(/exhausted|allocate/);
  });

  test("there are no core dumps", async () => {
    expect(await run(spawner, "ulimit -c")).toBe("0\n");
  });

  test.skipIf(!capsPerNamespace)(
    "G15: a fork bomb stays within its tree (where the kernel counts per tree)",
    { meta: { id: "process/fork-bomb-capped" } },
    async () => {
      const bomb =
        "n=0; while [ $n -lt 900 ]; do (exec sleep 8000126) & n=$((n + 1)); done; ls /proc | grep -c '^[0-9]'";
      const bombRequest = request(`{ ${bomb}; } 2>&1; echo over`, { limits: { processesMax: 50 }, graceMs: 0 });
      const child = await spawner.spawn(bombRequest);
      await says(child, "over").catch(() => undefined);
      child.stop(0);
      const end = await child.ended;
      // Fifty, plus the three hundred pids that every namespace reserves.
      expect(child.output.excerpt().head).toMatch(/[Cc]annot fork|Resource/);
      expect(end.escaped).toEqual([]);
    },
  );

  test.skipIf(!capsPerNamespace || programs.perl === undefined)(
    "a tree has at most `processesMax` processes (where the kernel counts per tree)",
    async () => {
      const forks = 'while ($n++ < 900) { $pid = fork; last unless defined $pid; exec "sleep", "8000127" unless $pid }';
      const command = `exec perl -e '${forks}; $| = 1; print "over\n"; sleep'`;
      const child = await spawner.spawn(request(command, { limits: { processesMax: 50 }, graceMs: 0 }));
      await says(child, "over");
      // Counted outside, while none is started. The processes that start the command are in the tree too.
      const { length } = [child.pid, ...descendantsOf(child.pid)];
      child.stop(0);
      await child.ended;
      expect(length).toBeGreaterThan(45);
      expect(length).toBeLessThanOrEqual(50);
    },
  );

  test.skipIf(!root).each(["bubblewrap", "unshare"] as const)(
    "G38: root has no capability that undoes a mount, held by %s (as root)",
    async (mechanism) => {
      const held = await openSpawner({ dir, workspace, clock: systemClock, mechanism, profile: "contain" });
      const text = await run(held, "grep -E 'Cap(Bnd|Eff|Prm)' /proc/self/status");
      await held.close();
      const sets = [...text.matchAll(/^Cap\w+:\s+([0-9a-f]+)$/gm)].map(([, hex]) => BigInt(`0x${hex}`));
      expect(sets).toHaveLength(3);
      for (const set of sets) for (const bit of UNDOING_BITS) expect((set >> bit) & 1n).toBe(0n);
    },
  );

  test.skipIf(!root)("root keeps its capabilities, where the profile does not drop them (as root)", async () => {
    expect(await run(spawner, "grep CapEff /proc/self/status")).not.toMatch(/CapEff:\s0{16}/);
  });
});

describe.skipIf(programs.script === undefined)("a terminal (where `script` is installed)", () => {
  let spawner: OpenSpawner;

  beforeAll(async () => {
    spawner = await openSpawner({ dir, workspace, clock: systemClock });
  });
  afterAll(() => spawner.close());

  const terminal = { columns: 91, rows: 17 };

  test("has the requested size, and one stream", async () => {
    expect(await run(spawner, "tty >/dev/null && stty size; echo err >&2", { terminal })).toBe("17 91\r\nerr\r\n");
  });

  test("is resized, and its program receives SIGWINCH", async () => {
    const command = "trap 'stty size' WINCH; echo up; while :; do sleep 0.01; done";
    const child = await spawner.spawn(request(command, { terminal }));
    await says(child, "up");
    await child.resize({ columns: 120, rows: 40 });
    // Rows and columns are set one after the other, so it may receive two signals: the last one counts.
    await says(child, "40 120");
    child.stop(0);
    await child.ended;
    expect(child.output.excerpt().head).toContain("40 120");
  });

  test("lets its program clean up when it is stopped", async () => {
    const command = "trap 'echo tidied; exit 5' TERM; echo up; while :; do sleep 0.01; done";
    const child = await spawner.spawn(request(command, { terminal }));
    await says(child, "up");
    child.stop();
    expect(await child.ended).toMatchObject({ code: 5, signals: ["SIGTERM"], escaped: [] });
    expect(child.output.excerpt().head).toContain("tidied");
  });

  test("that was not requested has no size", async () => {
    const child = await spawner.spawn(request("true"));
    await expect(child.resize(terminal)).rejects.toMatchObject({ code: "invalid" });
    await child.ended;
  });
});

// Carries out what `src/process/containment/attacks.ts` lists, with one mechanism, and reports what came of each
// attack.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { SessionId } from "../../src/core/model/ids.ts";
import type { Child, Mechanism, Profile } from "../../src/ports/spawner.ts";
import { ATTACKS, type Attack, type Enforcement } from "../../src/process/containment/attacks.ts";
import { type OpenSpawner, openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { CLOSES, MOVES, markOf, survivorsOf, THREADS } from "./shapes.ts";

/** The descriptor under which `inherited-descriptor.ts` is given the root directory. */
export const INHERITED_FD = 20;

let count = (process.pid % 10_000) * 10_000 + 5_000;

/** A data directory with a secret in it, and what an attacker needs to know. */
class Ground {
  readonly base = realpathSync(mkdtempSync(join(tmpdir(), "belay-attacks-")));
  readonly account = join(this.base, "account");
  readonly data = join(this.account, ".local/state/belay");
  readonly state = join(this.data, "belay.db.processes");
  readonly workspace = join(this.base, "work");
  readonly token = join(this.data, "token");
  readonly config = join(this.workspace, "project/belay.config.mjs");
  readonly mechanism: Mechanism;
  readonly profile: Profile;
  spawner!: OpenSpawner;

  constructor(mechanism: Mechanism, profile: Profile) {
    this.mechanism = mechanism;
    this.profile = profile;
  }

  async open(): Promise<this> {
    for (const path of [this.data, dirname(this.config)]) mkdirSync(path, { recursive: true });
    writeFileSync(this.token, "SECRET");
    writeFileSync(this.config, CONFIG);
    this.spawner = await this.another();
    return this;
  }

  another(mechanism?: Mechanism): Promise<OpenSpawner> {
    const { state: dir, workspace, data, config, profile } = this;
    const chosen = mechanism ?? this.mechanism;
    const kept = { hidden: [data], readOnly: [config] };
    return openSpawner({ dir, workspace, ...kept, clock: systemClock, mechanism: chosen, profile });
  }

  start(command: string, sessionId: SessionId = "ses_attack"): Promise<Child> {
    count += 1;
    return this.spawner.spawn({ id: `proc_attack.${count}`, sessionId, command, graceMs: 100 });
  }

  async run(command: string, sessionId?: SessionId): Promise<string> {
    const child = await this.start(command, sessionId);
    await child.ended;
    const { head, tail } = child.output.excerpt();
    return head + tail;
  }

  async close(): Promise<void> {
    await this.spawner.close();
    rmSync(this.base, { recursive: true, force: true });
  }
}

async function heard(child: Child, words: string): Promise<void> {
  let text = "";
  for await (const page of child.output.follow()) {
    text += page.text;
    if (text.includes(words)) return;
  }
}

/** Starts it, stops it once it is up, and looks who is left. */
async function outlives(ground: Ground, command: (mark: string) => string): Promise<Enforcement> {
  count += 1;
  const mark = markOf(count);
  const child = await ground.start(command(mark));
  await heard(child, "up");
  child.stop(0);
  const { escaped } = await child.ended;
  const left = survivorsOf(mark);
  for (const pid of left) process.kill(pid, "SIGKILL");
  if (left.length === 0) return "refused";
  return escaped.length > 0 ? "reported" : "cannot enforce";
}

const shedding = (mark: string, word = "up"): string =>
  `env -i setsid sh -c '(sh -c "${CLOSES}; echo ${word}; exec sleep ${mark} >&-" &)'`;

const killing = (mark: string): string =>
  `${shedding(mark, "shed")}; sleep 0.1; kill -KILL $PPID; echo up; sleep ${mark}`;

const CONFIG = "export default {};\n";

/** What would uncover a path that is covered by a mount, or reach what is below by another way. */
const UNCOVERS = (path: string, token: string): string =>
  `umount -l ${path}; umount -R ${path}; cat ${token} /proc/1/root/${token}; nsenter -t 1 -m cat ${token}; ` +
  `unshare -Urm sh -c "umount ${path}; cat ${token}"`;

const CARRIED_OUT: Readonly<Record<Attack, (ground: Ground) => Promise<Enforcement>>> = {
  "data-directory": async (ground) => {
    const { data, state, token } = ground;
    await ground.run("echo WORDS", "ses_neighbour");
    const said = await ground.run(
      `cat ${token}; echo "sees $(ls -A ${data})"; grep -rq WORDS ${state}/output && echo SECRET; ` +
        `(cd ${data} && echo x > tokens.json.new); echo x > ${state}/ledger/forged.json; ` +
        `for file in ${state}/output/*/*; do echo x > $file; done; ${UNCOVERS(data, token)}`,
    );
    const seen = said.includes("SECRET") || !/^sees $/m.test(said);
    const changed = [join(data, "tokens.json.new"), join(state, "ledger/forged.json")].some(
      (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined,
    );
    const outputs = readdirSync(join(state, "output"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"));
    const forged = !outputs.some((text) => text.includes("WORDS"));
    return seen || changed || forged ? "cannot enforce" : "not visible";
  },
  "renamed-directory": async (ground) => {
    const { data, base } = ground;
    for (let path = data; path !== base; path = dirname(path)) {
      const { ino } = lstatSync(path);
      await ground.run(`mv ${path} ${path}.old && mkdir ${path}`);
      if (lstatSync(path, { throwIfNoEntry: false })?.ino === ino) continue;
      rmSync(path, { recursive: true, force: true });
      renameSync(`${path}.old`, path);
      return "cannot enforce";
    }
    return "refused";
  },
  "rotated-token": async (ground) => {
    const { token, workspace } = ground;
    const rotated = join(workspace, "rotated");
    const child = await ground.start(
      `echo up; until [ -e ${rotated} ]; do cat ${token}; sleep 0.01; done 2>/dev/null; cat ${token}`,
    );
    await heard(child, "up");
    writeFileSync(`${token}.new`, "ROTATED");
    renameSync(`${token}.new`, token);
    writeFileSync(rotated, "");
    await child.ended;
    const { head, tail } = child.output.excerpt();
    return /ROTATED|SECRET/.test(head + tail) ? "cannot enforce" : "not visible";
  },
  descriptors: async ({ mechanism, profile, workspace }) => {
    const root = openSync("/", "r");
    const script = join(import.meta.dirname, "inherited-descriptor.ts");
    const others = Array.from({ length: INHERITED_FD - 3 }, () => "ignore" as const);
    const server = spawn(process.execPath, [script, workspace, mechanism, profile], {
      stdio: ["ignore", "pipe", "inherit", ...others, root],
    });
    closeSync(root);
    let said = "";
    server.stdout?.on("data", (data: Buffer) => {
      said += data.toString();
    });
    await once(server, "close");
    if (!said.includes("asked")) throw new Error(`The server with an inherited descriptor failed: ${said}`);
    return said.includes("found it") ? "cannot enforce" : "not visible";
  },
  "next-start": async (ground) => {
    const best = await openBest(ground);
    const forged = { results: { [best]: { kind: "failed", why: "x" }, group: { kind: "passed" } } };
    for (const name of ["containment.json", "last-mechanism"])
      await ground.run(`echo '${JSON.stringify(forged)}' > ${ground.state}/${name}`);
    return (await openBest(ground)) === best ? "refused" : "cannot enforce";
  },
  configuration: async (ground) => {
    const { config } = ground;
    const { ino } = lstatSync(config);
    const dir = dirname(config);
    await ground.run(
      `echo evil >> ${config}; mv ${config} ${config}.old; rm -f ${config}; echo evil > ${dir}/x; ` +
        `mv -f ${dir}/x ${config}; mv ${dir} ${dir}.old && cp -r ${dir}.old ${dir}; umount ${config}; ` +
        `unshare -Urm umount ${config}; echo evil >> ${config}`,
    );
    const kept = lstatSync(config, { throwIfNoEntry: false })?.ino === ino && readFileSync(config, "utf8") === CONFIG;
    return kept ? "refused" : "cannot enforce";
  },
  socket: async (ground) => {
    const socket = join(ground.data, "belay.sock");
    let reached = false;
    const server = createServer((connection) => {
      reached = true;
      connection.destroy();
    }).listen(socket);
    await once(server, "listening");
    await ground.run(`perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => "${socket}") or die'`);
    server.close();
    await once(server, "close");
    return reached ? "cannot enforce" : "not visible";
  },
  "server-process": async (ground) => {
    const { pid } = process;
    // The signal opens the debugger of this program: it is sent only if there is nothing to send it to.
    const said = await ground.run(
      `if kill -0 ${pid} || kill -USR1 ${pid}; then echo reached; fi; cat /proc/${pid}/environ`,
    );
    return /reached|PATH=/.test(said) ? "cannot enforce" : "not visible";
  },
  "leader-exited": (ground) => outlives(ground, (mark) => `${THREADS(mark)} & wait`),
  "left-cgroup": (ground) => outlives(ground, (mark) => `${MOVES}; ${shedding(mark)}; sleep ${mark}`),
  "killed-leader": (ground) => outlives(ground, killing),
  "left-and-killed": (ground) => outlives(ground, (mark) => `${MOVES}; ${killing(mark)}`),
};

async function openBest({ state: dir, workspace, data }: Ground): Promise<Mechanism> {
  const spawner = await openSpawner({ dir, workspace, hidden: [data], clock: systemClock });
  await spawner.close();
  return spawner.mechanism;
}

export async function carryOut(attack: Attack, mechanism: Mechanism, profile: Profile): Promise<Enforcement> {
  const ground = await new Ground(mechanism, profile).open();
  try {
    return await CARRIED_OUT[attack](ground);
  } finally {
    await ground.close();
  }
}

/** The profiles in which a mechanism is attacked: all that it has. */
export const PROFILES: Readonly<Record<Mechanism, readonly Profile[]>> = {
  bubblewrap: ["none", "contain", "workspace"],
  unshare: ["none", "contain"],
  cgroup: ["none"],
  anchor: ["none"],
  group: ["none"],
};

export const ATTACK_NAMES = Object.keys(ATTACKS) as readonly Attack[];

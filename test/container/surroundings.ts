// What containers give a program, made without a container engine: each of these is a program that changes its own
// surroundings and then becomes the next one.
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import type { Tier } from "../../src/ports/spawner.ts";
import { lookAtMachine } from "../../src/process/containment/machine.ts";

export interface Surroundings {
  readonly name: string;
  readonly first?: boolean;
  readonly uid?: number;
  readonly environment?: Readonly<Record<string, string>>;
  /** Nothing can be written to but the data directory. */
  readonly readOnly?: boolean;
  /** The default filter of Docker, and its capabilities: no namespaces. */
  readonly docker?: boolean;
  readonly limits?: Readonly<Record<string, number>>;
  readonly group?: Readonly<Partial<Record<"pids" | "memory", string>>>;
  /** The tiers of which one must be found. Default: the best that the machine has. */
  readonly tiers?: readonly Tier[];
  /** Instead of holding: refused, and this is said. */
  readonly refused?: RegExp;
}

export const NOBODY = 12_345;
const NO_NAMESPACE: readonly Tier[] = ["cgroup", "anchor", "group"];
const ALL = { first: true, readOnly: true, docker: true, tiers: NO_NAMESPACE } as const;

export const SURROUNDINGS: readonly Surroundings[] = [
  { name: "as the first process", first: true },
  { name: "as the first process, with 128 processes at most", first: true, group: { pids: "128" } },
  { name: "without namespaces, as Docker filters them", docker: true, tiers: NO_NAMESPACE },
  { name: "with a read-only root", readOnly: true },
  { name: "as a user without an entry or a home directory", uid: NOBODY },
  { name: "as such a user, without namespaces", uid: NOBODY, docker: true, tiers: NO_NAMESPACE },
  { name: "with 96 open files at most", limits: { nofile: 96 } },
  { name: "with 512 MiB of memory", group: { memory: "512M" } },
  { name: "all of these, as root", ...ALL, limits: { nofile: 256 }, group: { pids: "128", memory: "512M" } },
  {
    name: "all of these, as a user without an entry",
    ...{ ...ALL, uid: NOBODY, limits: { nofile: 256 }, group: { pids: "128", memory: "512M" } },
  },
  // With fewer than these Node itself does not start.
  { name: "with 24 open files at most", limits: { nofile: 24 }, refused: /Raise the limit on open files/ },
  { name: "with 48 open files at most", limits: { nofile: 48 }, refused: /Raise the limit on open files/ },
  { name: "with 12 processes at most", uid: NOBODY, limits: { nproc: 12 }, refused: /raise the limits on processes/ },
  { name: "without /proc", environment: { NO_PROC: "1" }, refused: /\/proc/ },
];

/** Whether this machine can make them. Undefined: it can. */
export function missingFor(one: Surroundings): string | undefined {
  const { root, programs } = lookAtMachine();
  if (!root) return "only root can make them";
  if (programs.unshare === undefined || programs.setpriv === undefined) return "util-linux is missing";
  if (one.docker === true && process.arch !== "x64") return "the filter is written for x64";
  const absent = Object.keys(one.group ?? {}).find((name) => !existsSync(`/sys/fs/cgroup/${name}/cgroup.procs`));
  return absent === undefined ? undefined : `there is no control group of version 1 for ${absent}`;
}

const LIMIT_FILES = { pids: "pids.max", memory: "memory.limit_in_bytes" } as const;

/** Makes the control groups. The answer removes them. */
export function makeGroups({ group = {} }: Surroundings, name: string): () => void {
  const dirs = Object.entries(group).map(([kind, value]) => {
    const dir = `/sys/fs/cgroup/${kind}/${name}`;
    mkdirSync(dir);
    writeFileSync(`${dir}/${LIMIT_FILES[kind as keyof typeof LIMIT_FILES]}`, value);
    return dir;
  });
  return () => {
    for (const dir of dirs) rmdirSync(dir);
  };
}

/** The words that put a program into these surroundings. `dir` is the data directory. */
export function wordsFor(one: Surroundings, name: string, dir: string): readonly string[] {
  const shell = (script: string): readonly string[] => ["sh", "-c", `${script} && exec "$@"`, "surroundings"];
  const groups = Object.keys(one.group ?? {}).map((kind) => `echo 0 > /sys/fs/cgroup/${kind}/${name}/cgroup.procs`);
  const mounts = [
    ...(one.readOnly === true ? [`mount --bind ${dir} ${dir}`, "mount -o remount,bind,ro /"] : []),
    ...(one.docker === true ? ["for it in /sys/fs/cgroup/*; do mount -o remount,bind,ro $it || :; done"] : []),
    ...(one.environment?.NO_PROC === undefined ? [] : ["umount -R /proc"]),
  ];
  const { limits = {}, uid } = one;
  return [
    ...(groups.length === 0 ? [] : shell(groups.join(" && "))),
    ...(mounts.length === 0 ? [] : ["unshare", "--mount", ...shell(mounts.join(" && "))]),
    ...(one.first === true ? ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] : []),
    ...(one.docker === true ? ["perl", "-MMIME::Base64", "-e", FILTERED, DOCKER_FILTER.toString("base64")] : []),
    ...(Object.keys(limits).length === 0
      ? []
      : ["prlimit", ...Object.entries(limits).map(([key, n]) => `--${key}=${n}`)]),
    ...(one.docker === true || uid !== undefined ? ["setpriv", ...rights(one), "--"] : []),
  ];
}

function rights({ docker, uid }: Surroundings): readonly string[] {
  return [
    ...(docker === true ? [`--bounding-set=-all,${DOCKER_RIGHTS.map((right) => `+${right}`).join(",")}`] : []),
    ...(uid === undefined ? [] : [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"]),
  ];
}

/** What Docker leaves to root. */
const DOCKER_RIGHTS = [
  ...["chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service"],
  ...["net_raw", "sys_chroot", "audit_write", "setfcap"],
];

/** Installs a filter and becomes the rest of its arguments. The numbers are those of prctl on x64. */
const FILTERED = [
  "my $filter = decode_base64(shift);",
  'my $program = pack("S x6 J", length($filter) / 8, unpack("J", pack("P", $filter)));',
  'syscall(157, 22, 2, $program, 0, 0) == 0 or die "no filter: $!";',
  'exec { $ARGV[0] } @ARGV or die "no exec: $!";',
].join(" ");

/** Denies what makes or enters namespaces, and mounts, as the default profile of Docker does. */
const DOCKER_FILTER = ((): Buffer => {
  const [allow, denied, absent] = [0x7fff_0000, 0x0005_0001, 0x0005_0026];
  const namespaces = 0x7e02_0000;
  const whole = [165, 166, 155, 308, 321, 298, 428, 429, 430, 431, 432, 442]; // mount … setns, bpf, open_tree …
  const steps: number[][] = [[0x20, 0, 0, 0]];
  for (const call of whole) steps.push([0x15, 0, 1, call], [0x06, 0, 0, denied]);
  steps.push([0x15, 0, 1, 435], [0x06, 0, 0, absent]); // clone3
  for (const call of [56, 272]) {
    // clone and unshare, by their flags
    steps.push(
      [0x15, 0, 4, call],
      [0x20, 0, 0, 16],
      [0x45, 0, 1, namespaces],
      [0x06, 0, 0, denied],
      [0x06, 0, 0, allow],
    );
  }
  steps.push([0x06, 0, 0, allow]);
  const bytes = Buffer.alloc(steps.length * 8);
  for (const [index, [code = 0, yes = 0, no = 0, value = 0]] of steps.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(yes, index * 8 + 2);
    bytes.writeUInt8(no, index * 8 + 3);
    bytes.writeUInt32LE(value, index * 8 + 4);
  }
  return bytes;
})();

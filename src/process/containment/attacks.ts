// Attacks that a command could try against the Belay that runs it, and the result for each mechanism. `doctor`, the
// start message and SECURITY.md print this table; `test/trees/attacks.ts` carries out each attack.
import type { Mechanism, Tier } from "../../ports/spawner.ts";

/**
 * `refused`: the attempt fails. `not visible`: the target cannot be seen. `reported`: it works, and is reported.
 * `cannot enforce`: it works, because the mechanism shares files or processes with its commands.
 */
export const ENFORCEMENTS = ["refused", "not visible", "reported", "cannot enforce"] as const;

export type Enforcement = (typeof ENFORCEMENTS)[number];

export const ATTACKS = {
  "data-directory": "read or change the data directory: tokens, store, ledger, output of other sessions",
  "renamed-directory": "rename the data directory, or a directory above it, and put another one there",
  "rotated-token": "read a token that is rotated while the command runs",
  descriptors: "use a file that the server has inherited",
  "next-start": "lower the tier of the next start",
  configuration: "change the configuration, or the code, that the next start runs",
  socket: "connect to the private socket",
  "server-process": "signal the server, read its environment, or open its debugger",
  "leader-exited": "outlive a stop with a first thread that has ended",
  "left-cgroup": "outlive a stop in another control group, without environment and files",
  "killed-leader": "outlive a stop by killing what holds it, without environment and files",
  "left-and-killed": "outlive a stop by both, another control group and killing what holds it",
} as const;

export type Attack = keyof typeof ATTACKS;

type Row = Readonly<Record<Mechanism, Enforcement>>;

const everywhere = (result: Enforcement): Row => ({
  ...{ bubblewrap: result, unshare: result, cgroup: result, anchor: result, group: result },
});

/** The two mechanisms with a mount and a PID namespace, and the three that share everything with the server. */
const byNamespace = (result: Enforcement): Row => ({
  ...everywhere("cannot enforce"),
  ...{ bubblewrap: result, unshare: result },
});

export const ENFORCEMENT: Readonly<Record<Attack, Row>> = {
  "data-directory": byNamespace("not visible"),
  "renamed-directory": byNamespace("refused"),
  "rotated-token": byNamespace("not visible"),
  descriptors: everywhere("not visible"),
  "next-start": everywhere("refused"),
  configuration: byNamespace("refused"),
  socket: byNamespace("not visible"),
  "server-process": byNamespace("not visible"),
  "leader-exited": everywhere("refused"),
  "left-cgroup": { ...everywhere("refused"), group: "cannot enforce" },
  "killed-leader": { ...everywhere("refused"), anchor: "reported", group: "cannot enforce" },
  "left-and-killed": { ...everywhere("refused"), cgroup: "reported", anchor: "reported", group: "cannot enforce" },
};

/** Attacks that mounts prevent. */
const AGAINST_MOUNTS: readonly Attack[] = [
  ...(["data-directory", "renamed-directory", "rotated-token", "configuration", "socket"] as const),
];

/** The attacks that work against this mechanism, as text for users. `mounts`: whether mounts can be made here. */
export function unenforced(mechanism: Mechanism, mounts: boolean): readonly string[] {
  const attacks = Object.keys(ATTACKS) as readonly Attack[];
  return attacks
    .filter((one) => ENFORCEMENT[one][mechanism] === "cannot enforce" || (!mounts && AGAINST_MOUNTS.includes(one)))
    .map((one) => ATTACKS[one]);
}

/** One sentence for the start message. Undefined: commands of this tier cannot reach Belay. `mounts` as above. */
export const tierWarning = (tier: Tier, mounts = true): string | undefined =>
  tier === "namespace"
    ? mounts
      ? undefined
      : "commands can reach Belay's own files, because `mount` is missing: install util-linux or bubblewrap"
    : `commands of tier ${tier} can reach Belay's own files and processes: install bubblewrap, or run Belay as a ` +
      "separate user; belay doctor says more";

import { expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { gateArguments } from "../launch/gate.ts";
import { dropRights, dropUndoing } from "../tree/namespace-tree.ts";
import type { LaunchPlan } from "./containment.ts";
import { unshareArguments } from "./unshare.ts";

const plan: LaunchPlan = {
  ...{ id: "proc_un.1", cookie: "proc_un.1:x", argv: ["/bin/true"], env: {}, cwd: "/", workspace: "/" },
  ...{ profile: "none", limits: { processesMax: 100 }, terminal: false },
};

test.each([
  { userNamespace: true, caps: true, drops: true },
  // No capability was kept for the cap, so there is none to drop.
  { userNamespace: true, caps: false, drops: false },
  // Root drops those that would undo the mounts, and keeps the rest.
  { userNamespace: false, caps: true, drops: false },
  { userNamespace: false, caps: false, drops: false },
])(
  "a command has dropped the capabilities that its leader needed, and those that undo mounts: $userNamespace, $caps",
  (given) => {
    const { drops, ...options } = given;
    const programs = { unshare: "unshare", setpriv: "/bin/setpriv", setsid: "setsid", clock: manualClock() } as const;
    const args = unshareArguments({ ...programs, mount: "mount", protects: () => ({ hidden: [] }), ...options }, plan);
    const behind = args.slice(args.indexOf("belay") + 1);
    const root = options.userNamespace ? [] : dropUndoing("/bin/setpriv");
    expect(behind).toEqual([...(drops ? dropRights("/bin/setpriv") : root), ...gateArguments(plan)]);
  },
);

import { expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
import type { Plan } from "./containment.ts";
import { gateArguments } from "./gate.ts";
import { dropRights } from "./namespace-tree.ts";
import { unshareArguments } from "./unshare.ts";

const plan: Plan = {
  ...{ id: "proc_un.1", cookie: "proc_un.1:x", argv: ["/bin/true"], env: {}, cwd: "/", workspace: "/" },
  ...{ profile: "none", limits: { processesMax: 100 }, terminal: false },
};

test.each([
  { userNamespace: true, caps: true, drops: true },
  // Nothing was kept for the cap, so nothing is to be given up.
  { userNamespace: true, caps: false, drops: false },
  // The rights are the user's own, and not the namespace's.
  { userNamespace: false, caps: true, drops: false },
  { userNamespace: false, caps: false, drops: false },
])("a command has given up the rights that were kept to cap it, and no others: $userNamespace, $caps", (given) => {
  const { drops, ...options } = given;
  const programs = { unshare: "unshare", setpriv: "/bin/setpriv", setsid: "setsid", clock: manualClock() };
  const args = unshareArguments({ ...programs, ...options }, plan);
  const behind = args.slice(args.indexOf("belay") + 1);
  expect(behind).toEqual([...(drops ? dropRights("/bin/setpriv") : []), ...gateArguments(plan)]);
});

// `belay doctor`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";

export function doctorCommand(): Command {
  const command = new Command("doctor")
    .description("how surely processes can be ended on this machine, tested, and how to do better")
    .option("--require <tier>", "fail unless processes are held that surely: namespace, cgroup, anchor or group")
    .action((flags: { readonly require?: string; readonly json?: true }) =>
      act(async () => {
        const { runDoctor, tierOf } = await import("./doctor.ts");
        const require = flags.require === undefined ? undefined : tierOf(flags.require);
        return runDoctor({ json: flags.json === true, require });
      }),
    );
  return withExamples(withJson(command), [
    ["belay doctor", "what works here, and the fix for what does not"],
    ["belay doctor --require namespace", "16 unless trees surely die here"],
  ]);
}

// `belay demo`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withExamples } from "../../shared/examples.ts";

export function demoCommand(): Command {
  const command = new Command("demo")
    .description("a tour in the terminal, without keys or network")
    .option("--fast", "no pauses for reading")
    .option("--hands-on", "the same agent, and every stop button under your own fingers")
    .action((flags: { readonly fast?: true; readonly handsOn?: true }) =>
      act(async () => {
        const pace = flags.fast ? "fast" : "reading";
        if (flags.handsOn) return (await import("./hands-on.ts")).runHandsOn({ pace });
        return (await import("./demo.ts")).runDemo({ pace });
      }),
    );
  return withExamples(command, [
    ["belay demo", "plays to its end"],
    ["belay demo --hands-on", "you prompt, you stop"],
  ]);
}

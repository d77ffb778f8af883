// Loaded before an example: `agent-belay` then means the sources, so that an example tests what is here, built or not.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const root = new URL("../", import.meta.url);
const about = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as {
  readonly name: string;
  readonly exports: Readonly<Record<string, { readonly default?: string }>>;
};

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== about.name && !specifier.startsWith(`${about.name}/`)) return next(specifier, context);
    const target = about.exports[`.${specifier.slice(about.name.length)}`]?.default;
    if (target === undefined) return next(specifier, context);
    const source = target.replace("./dist/", "./src/").replace(/\.js$/, ".ts");
    return { url: new URL(source, root).href, shortCircuit: true };
  },
});

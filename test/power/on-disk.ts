// Puts the store's own modules, as they are, onto the simulated disk: where they import the file system or SQLite of
// the platform, they are given those of the disk. To be loaded before they are.
import { registerHooks } from "node:module";

const STAND_INS: Readonly<Record<string, string>> = {
  "node-sqlite.ts": new URL("./disk-sqlite.ts", import.meta.url).href,
  "node:fs": new URL("./disk-fs.ts", import.meta.url).href,
};

registerHooks({
  resolve(specifier, context, next) {
    const url = STAND_INS[specifier.split("/").at(-1) ?? ""];
    if (url === undefined || !context.parentURL?.includes("/src/store/sqlite/")) return next(specifier, context);
    return { url, shortCircuit: true };
  },
});

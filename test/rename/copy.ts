// A copy of the repository in which files may be changed.
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ROOT, type SourceText } from "../fixtures/repository.ts";
import { applyChanges, type Change } from "../mistakes/place.ts";

export class Copy {
  readonly root = mkdtempSync(join(tmpdir(), "belay-renamed-"));

  constructor() {
    const paths = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], { cwd: ROOT, encoding: "utf8" });
    for (const path of paths.split("\0").filter((name) => name !== "")) {
      // A file that was removed and not committed is still listed.
      if (!existsSync(join(ROOT, path))) continue;
      mkdirSync(join(this.root, dirname(path)), { recursive: true });
      copyFileSync(join(ROOT, path), join(this.root, path));
    }
    // A folder of links and not a link to the folder: the mutation tester looks for a real one.
    mkdirSync(join(this.root, "node_modules"));
    for (const name of readdirSync(join(ROOT, "node_modules"))) {
      symlinkSync(join(ROOT, "node_modules", name), join(this.root, "node_modules", name));
    }
  }

  /** Every TypeScript file we wrote. */
  sources(): readonly SourceText[] {
    const paths = execFileSync("find", [".", "-name", "*.ts", "-not", "-path", "./node_modules/*"], {
      cwd: this.root,
      encoding: "utf8",
    });
    return paths
      .split("\n")
      .filter((path) => path !== "")
      .map((path) => ({ path: path.slice(2), text: readFileSync(join(this.root, path), "utf8") }));
  }

  apply(changes: ReadonlyMap<string, readonly Change[]>): void {
    for (const [path, made] of changes) {
      const file = join(this.root, path);
      writeFileSync(file, applyChanges(readFileSync(file, "utf8"), made));
    }
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

// The folder of the demo's tools. Its files have plain names, so that no path leads out of it.
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const PLAIN_NAME = /^[A-Za-z0-9][\w-]{0,59}(\.[a-z0-9]{1,8})?$/;
const FILE_CHARS_MAX = 64 * 1024;
const WELCOME = "This folder belongs to the demo agent, and is removed with the demo.\n";

export class DemoFolder {
  readonly path: string;
  #made: Promise<void> | undefined = undefined;

  /** The folder is created on first use. The caller removes it. */
  constructor(path: string) {
    this.path = path;
  }

  async list(): Promise<readonly string[]> {
    await this.make();
    return (await readdir(this.path)).toSorted();
  }

  async read(name: string): Promise<string> {
    await this.make();
    const text = await readFile(this.#place(name), "utf8").catch(async () => {
      throw new Error(`There is no file ${name}. There are: ${(await this.list()).join(", ")}.`);
    });
    return text.slice(0, FILE_CHARS_MAX);
  }

  async write(name: string, text: string): Promise<void> {
    if (text.length > FILE_CHARS_MAX) throw new Error(`A file of the demo has at most ${FILE_CHARS_MAX} characters.`);
    await this.make();
    await writeFile(this.#place(name), text);
  }

  make(): Promise<void> {
    this.#made ??= this.#make();
    return this.#made;
  }

  async #make(): Promise<void> {
    await mkdir(this.path, { recursive: true });
    await writeFile(join(this.path, "welcome.txt"), WELCOME);
  }

  #place(name: string): string {
    if (!PLAIN_NAME.test(name)) throw new Error("A file of the demo has a plain name, such as notes.txt.");
    return join(this.path, name);
  }
}

// Measures the layout of `src`: import cycles, folders that import each other, long files, crowded folders.
import { type Import, importsOf, isTest, type SourceText } from "../fixtures/repository.ts";
import { cycles } from "../rules/import-rules.ts";

export const FILE_LINES_MAX = 400;
export const FOLDER_FILES_MAX = 25;

export interface Layout {
  readonly cycles: readonly string[];
  /** Pairs of top-level folders that import each other. */
  readonly mutual: readonly string[];
  readonly filesOver400: readonly string[];
  readonly foldersOver25: readonly string[];
  /** Which top-level folder imports which, and how many imports that is. */
  readonly edges: readonly Edge[];
}

export interface Edge {
  readonly from: string;
  readonly to: string;
  readonly imports: number;
}

export function measureLayout(files: readonly SourceText[]): Layout {
  const own = files.filter(({ path }) => path.startsWith("src/") && !isTest(path));
  const edges = edgesBetween(own);
  return {
    cycles: cycles(own),
    mutual: edges
      .filter(({ from, to }) => from < to && edges.some((back) => back.from === to && back.to === from))
      .map(({ from, to }) => `${from} and ${to}`),
    filesOver400: own.filter(({ text }) => text.trimEnd().split("\n").length > FILE_LINES_MAX).map(({ path }) => path),
    foldersOver25: [...filesByFolder(own)]
      .filter(([, count]) => count > FOLDER_FILES_MAX)
      .map(([folder, count]) => `${folder} (${count} files)`),
    edges,
  };
}

/** `engine` for `src/engine/log/commit.ts`, `index` for `src/index.ts`. */
export const folderOf = (path: string): string => (path.split("/")[1] ?? "").replace(/\.ts$/, "");

function edgesBetween(files: readonly SourceText[]): readonly Edge[] {
  const counts = new Map<string, number>();
  for (const file of files) {
    const from = folderOf(file.path);
    for (const { target } of importsOf(file).filter(isInside)) {
      const to = folderOf(target ?? "");
      if (to !== from) counts.set(`${from} ${to}`, (counts.get(`${from} ${to}`) ?? 0) + 1);
    }
  }
  return [...counts].map(([pair, imports]) => {
    const [from = "", to = ""] = pair.split(" ");
    return { from, to, imports };
  });
}

const isInside = ({ target }: Import): boolean => target?.startsWith("src/") === true;

function filesByFolder(files: readonly SourceText[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { path } of files) {
    const folder = path.slice(0, path.lastIndexOf("/"));
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return counts;
}

import { execFile } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { UsageError, describeError } from "../../errors.ts";

const run = promisify(execFile);

/** The interpreter to use, and where it was found. */
export interface FoundPython {
  readonly executable: string;
  /** The place where the interpreter was found, in words, such as `.venv`. */
  readonly origin: string;
}

/**
 * Finds the interpreter for an environment, in this order: the interpreter that is named; that of the file's own
 * packages (a `# /// script` block, by uv); a `.venv` beside the file or above it; an active virtual or conda
 * environment; `python3` of the path.
 *
 * @param file - The environment's file. Absent for an environment of a library.
 * @throws UsageError if there is no interpreter.
 */
export async function findPython({
  named,
  file,
}: {
  readonly named?: string | undefined;
  readonly file?: string | undefined;
}): Promise<FoundPython> {
  if (named !== undefined) return await readNamed(named);
  const ofScript = file === undefined ? undefined : await readScriptPython(file);
  if (ofScript !== undefined) return ofScript;
  const start = file === undefined ? process.cwd() : path.dirname(path.resolve(file));
  const venvs = foldersAbove(start).map((folder) => ({
    folder: path.join(folder, ".venv"),
    origin: ".venv",
  }));
  const active = ["VIRTUAL_ENV", "CONDA_PREFIX"].flatMap((name) => {
    const folder = process.env[name];
    return folder ? [{ folder, origin: name }] : [];
  });
  for (const { folder, origin } of [...venvs, ...active]) {
    const executable = path.join(folder, "bin", "python");
    if (await exists(executable)) return { executable, origin };
  }
  for (const name of ["python3", "python"]) {
    if (await runs(name)) return { executable: name, origin: name };
  }
  throw new UsageError(
    `Cannot find Python: there is no .venv in ${start} or above, no active environment (VIRTUAL_ENV, CONDA_PREFIX), ` +
      "and no python3, expected Python 3.10 or newer, or its path in --python",
  );
}

async function readNamed(named: string): Promise<FoundPython> {
  const isPath = named.includes("/") || named.includes(path.sep);
  if (isPath ? await exists(named) : await runs(named))
    return { executable: isPath ? path.resolve(named) : named, origin: "--python" };
  throw new UsageError(
    `Cannot find Python ${named}: it does not run, expected an interpreter's path or name`,
  );
}

/** Returns the interpreter with the packages that a script names (PEP 723), which uv installs. */
async function readScriptPython(file: string): Promise<FoundPython | undefined> {
  const text = await readFile(file, "utf8").catch(() => "");
  if (!/^# \/\/\/ script$/m.test(text)) return undefined;
  try {
    await run("uv", ["sync", "--script", file]);
    const { stdout } = await run("uv", ["python", "find", "--script", file]);
    return { executable: stdout.trim(), origin: "the packages of its script block" };
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { readonly stderr?: string };
    const why =
      code === "ENOENT"
        ? "uv is not installed"
        : `uv failed: ${(stderr ?? describeError(error)).trim().slice(-500)}`;
    throw new UsageError(
      `Cannot install the packages that ${file} names in its "# /// script" block: ${why}, expected uv, or an ` +
        "interpreter that has them in --python",
      { cause: error },
    );
  }
}

function foldersAbove(start: string): readonly string[] {
  const folders = [start];
  for (let folder = start; path.dirname(folder) !== folder;) {
    folder = path.dirname(folder);
    folders.push(folder);
  }
  return folders;
}

async function exists(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  );
}

async function runs(name: string): Promise<boolean> {
  return await run(name, ["--version"]).then(
    () => true,
    () => false,
  );
}

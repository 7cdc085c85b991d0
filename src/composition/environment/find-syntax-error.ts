import { execFile } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Where a module, or one that it imports, is no JavaScript. */
interface SyntaxPlace {
  readonly file: string;
  /** Counts from 1. */
  readonly line: number;
  /** What stands there, of a long line the beginning. */
  readonly code: string;
}

/** How long Node may take to read the modules, in milliseconds. */
const timeoutMs = 10_000;

/**
 * Finds the line of a syntax error: the error itself does not tell, only what Node prints of it when it ends.
 * Another Node is therefore made to read the module; as it stops there, nothing of it is run.
 */
export async function findSyntaxError(file: string): Promise<SyntaxPlace | undefined> {
  const args = [
    "--input-type=module",
    "--eval",
    `import ${JSON.stringify(pathToFileURL(file).href)};`,
  ];
  const printed = await new Promise<string>((resolve) => {
    execFile(process.execPath, args, { timeout: timeoutMs }, (_error, _stdout, stderr) => {
      resolve(stderr);
    });
  });
  const [, url, line, code = ""] = /^(file:.+):(\d+)\n(.*)/m.exec(printed) ?? [];
  if (url === undefined || !printed.includes("SyntaxError")) return undefined;
  return { file: fileURLToPath(url), line: Number(line), code: code.trim().slice(0, 80) };
}

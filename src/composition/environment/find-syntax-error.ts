import { execFile } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The place of a syntax error in a module or one of its imports. */
interface SyntaxPlace {
  readonly file: string;
  /** The line number, from 1. */
  readonly line: number;
  /** The line's text. A long line is cut. */
  readonly code: string;
}

/** The longest time for Node to read the modules, in milliseconds. */
const timeoutMs = 10_000;

/**
 * Finds the line of a syntax error. The error itself does not contain it; Node prints it only when
 * a process exits. The function therefore starts another Node process, which stops at the syntax
 * error and runs none of the module's code.
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

import { execFileSync } from "node:child_process";

/** The Python of tests: `TURNWRIGHT_TRAINERS_PYTHON`, or `python3`. */
export const python = process.env["TURNWRIGHT_TRAINERS_PYTHON"] ?? "python3";

/**
 * Returns the reason why a test cannot use `python`, or `undefined` if it can: it is 3.10 or newer, and imports the
 * modules.
 */
export function pythonObstacle(...modules: readonly string[]): string | undefined {
  const program = `import ${["sys", ...modules].join(", ")}; assert sys.version_info >= (3, 10)`;
  try {
    execFileSync(python, ["-c", program], { stdio: "ignore" });
    return undefined;
  } catch {
    const needed = modules.length === 0 ? "" : ` with ${modules.join(", ")}`;
    return `${python} is no Python of 3.10 or newer${needed} (TURNWRIGHT_TRAINERS_PYTHON names one)`;
  }
}

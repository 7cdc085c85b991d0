/** The libraries whose environments have an adapter: `LIBRARY:NAME` names one. */
export const pythonLibraries = [
  "verifiers",
  "reasoning-gym",
  "gem",
  "textarena",
  "gymnasium",
  "skyrl-gym",
] as const;

/** True if a name is the path of a Python file, such as `./calendar_env.py`. */
export function isPythonFile(name: string): boolean {
  return name.endsWith(".py");
}

/** True if a name is that of an environment in Python: a file, or `LIBRARY:NAME`. */
export function isPythonEnvironment(name: string): boolean {
  return isPythonFile(name) || pythonLibraries.some((library) => name.startsWith(`${library}:`));
}

/** The libraries with an adapter for their environments. `LIBRARY:NAME` names an environment. */
export const pythonLibraries = [
  "verifiers",
  "reasoning-gym",
  "gem",
  "textarena",
  "gymnasium",
  "skyrl-gym",
] as const;

/** The names under which `pip` installs libraries, where they differ from the library's own name. */
const distributions: Readonly<Record<string, string>> = {
  gem: "gem-llm",
  gymnasium: "gymnasium[toy-text]",
};

/**
 * Returns what `pip install` needs for a library's module, such as `gem-llm` for the module `gem` of `gem:NAME`.
 * Undefined for another module.
 */
export function distributionOf(environment: string, module: string): string | undefined {
  const library = pythonLibraries.find((known) => environment.startsWith(`${known}:`));
  if (library === undefined || library.replaceAll("-", "_") !== module) return undefined;
  return distributions[library] ?? library;
}

/** True if a name is the path of a Python file, such as `./calendar_env.py`. */
export function isPythonFile(name: string): boolean {
  return name.endsWith(".py");
}

/** True if a name is that of an environment in Python: a file, or `LIBRARY:NAME`. */
export function isPythonEnvironment(name: string): boolean {
  return isPythonFile(name) || pythonLibraries.some((library) => name.startsWith(`${library}:`));
}

import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../../errors.ts";
import { makeFolder } from "../../files/make-folder.ts";

/** The languages of environments that a project can begin with. */
export type ProjectLanguage = "javascript" | "typescript" | "python";

/** Options for a new project. */
interface ProjectOptions {
  /** The project's folder. It is created if it does not exist. */
  readonly dir: string;
  readonly language: ProjectLanguage;
  /** The folder of the package's templates, one folder a language. */
  readonly templateDir: string;
  /** JSON Schema of the configuration file, as text. */
  readonly schema: string;
  /** The version of this package that the project depends on. */
  readonly version: string;
}

/** The files of every project, by the names of their templates. */
const sharedTemplates: Readonly<Record<string, string>> = {
  "package.json": "package.json",
  "turnwright.json": "turnwright.json",
  "README.md": "README.md",
  // npm leaves a file with the name `.gitignore` out of packages.
  gitignore: ".gitignore",
};

/** A language's own files, by the names of their templates, and the commands to run next. */
const languages: Readonly<
  Record<
    ProjectLanguage,
    {
      readonly files: Readonly<Record<string, string>>;
      readonly next: readonly string[];
    }
  >
> = {
  javascript: {
    files: {
      "my-environment.js": "my-environment.js",
      // Another name keeps the template out of this package's own tests.
      "test-of-my-environment.js": "my-environment.test.js",
    },
    next: ["npm install", "npm test", "npx turnwright env check ./my-environment.js"],
  },
  typescript: {
    files: {
      "my-environment.ts": "my-environment.ts",
      "test-of-my-environment.ts": "my-environment.test.ts",
      "tsconfig.json": "tsconfig.json",
    },
    next: [
      "npm install",
      "npm test",
      "npm run check",
      "npx turnwright env check ./my-environment.ts",
    ],
  },
  python: {
    files: {
      "my_environment.py": "my_environment.py",
      "pyrightconfig.json": "pyrightconfig.json",
    },
    next: ["npm install", "npx turnwright env check ./my_environment.py"],
  },
};

/**
 * Returns the language that flags choose. Default: JavaScript.
 * @throws UsageError if they choose two.
 */
export function readLanguage(flags: {
  readonly typescript?: boolean | undefined;
  readonly python?: boolean | undefined;
}): ProjectLanguage {
  if (flags.typescript === true && flags.python === true) {
    throw new UsageError("Cannot take --typescript and --python together, expected one of them");
  }
  if (flags.typescript === true) return "typescript";
  return flags.python === true ? "python" : "javascript";
}

/**
 * Creates a project: an environment, a test that plays it, and a configuration file with its schema. Leaves existing
 * files unchanged.
 * @returns a message for the user with the place and the next steps.
 * @throws UsageError if a file of the project exists, or if the folder cannot be written.
 */
export async function createProject(options: ProjectOptions): Promise<string> {
  const { dir, language, templateDir, schema, version } = options;
  const { files: own, next } = languages[language];
  const files = new Map([["turnwright.schema.json", schema]]);
  const name = packageName(path.basename(path.resolve(dir)));
  for (const [template, file] of Object.entries({ ...sharedTemplates, ...own })) {
    const text = await readFile(path.join(templateDir, language, template), "utf8");
    files.set(file, text.replaceAll("NAME", name).replaceAll("VERSION", version));
  }
  for (const file of files.keys()) {
    if ((await stat(path.join(dir, file)).catch(() => undefined)) === undefined) continue;
    throw new UsageError(
      `Cannot create a project in ${dir}: ${file} is there already, expected a folder without it ` +
        "(name a new one)",
    );
  }
  try {
    await makeFolder(dir);
    for (const [file, text] of files) await writeFile(path.join(dir, file), text, { flag: "wx" });
  } catch (error) {
    throw new UsageError(`Cannot create a project in ${dir}: ${describeError(error)}`);
  }
  return describeProject(dir, next);
}

function describeProject(dir: string, next: readonly string[]): string {
  const isHere = path.resolve(dir) === process.cwd();
  const steps = [
    ...(isHere ? [] : [`cd ${/^[\w./-]+$/.test(dir) ? dir : JSON.stringify(dir)}`]),
    ...next,
  ];
  return `Created a project in ${path.resolve(dir)}. Next:\n${steps.map((step) => `  ${step}\n`).join("")}`;
}

/** Returns a valid npm package name for a folder. */
function packageName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return name === "" ? "my-environment" : name;
}

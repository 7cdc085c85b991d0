import { isPyDict, type PyDict, type PyValue } from "../../packages/python-values/src/value.ts";

/**
 * Yields the tools with more and more of the optional members that some chat templates read from every tool, each
 * empty, which means the same: `properties` of parameters (Seed-OSS), then the `description` of tools (gpt-oss,
 * Hermes), then of parameters (Command R+). Leaves out the steps that add nothing.
 */
export function* withEmptyMembers(tools: readonly PyValue[] | null): Iterable<readonly PyValue[]> {
  let given = tools ?? [];
  for (const complete of [withProperties, withDescription, withDescribedParameters]) {
    const whole = given.map((tool) =>
      isPyDict(tool) ? changeMember(tool, "function", complete) : tool,
    );
    if (whole.every((tool, index) => tool === given[index])) continue;
    given = whole;
    yield whole;
  }
}

function withProperties(about: PyDict): PyDict {
  return changeMember(about, "parameters", (schema) =>
    withMember(schema, "properties", new Map<string, PyValue>()),
  );
}

function withDescription(about: PyDict): PyDict {
  return withMember(about, "description", "");
}

function withDescribedParameters(about: PyDict): PyDict {
  return changeMember(about, "parameters", (schema) =>
    changeMember(schema, "properties", (properties) => {
      const described = [...properties].map(
        ([name, each]) => [name, isPyDict(each) ? withDescription(each) : each] as const,
      );
      const isSame = described.every(([name, each]) => each === properties.get(name));
      return isSame ? properties : new Map(described);
    }),
  );
}

/** Adds a member, unless the dictionary has it with another value than `None`. */
function withMember(dictionary: PyDict, name: string, value: PyValue): PyDict {
  const has = (dictionary.get(name) ?? null) !== null;
  return has ? dictionary : new Map([...dictionary, [name, value] as const]);
}

/** Changes a member that is a dictionary. Returns the dictionary itself if nothing changes. */
function changeMember(
  dictionary: PyDict,
  name: string,
  change: (member: PyDict) => PyDict,
): PyDict {
  const member = dictionary.get(name);
  const changed = isPyDict(member) ? change(member) : member;
  if (changed === undefined || changed === member) return dictionary;
  return new Map([...dictionary, [name, changed] as const]);
}

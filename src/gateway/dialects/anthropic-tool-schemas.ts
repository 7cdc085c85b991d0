/** A tool that clients of Anthropic's Messages send by its type, without a schema. The policy sees `parameters`. */
export interface TypedTool {
  readonly description: string;
  readonly parameters: object;
  /** Members of the request's tool entry that become sentences of the description. */
  readonly settings: readonly string[];
}

const text = (description: string) => ({ type: "string", description });
const integer = (description: string) => ({ type: "integer", description });
const pair = (description: string) => ({
  type: "array",
  items: { type: "integer" },
  minItems: 2,
  maxItems: 2,
  description,
});
const oneOf = (description: string, values: readonly string[]) => ({
  type: "string",
  enum: values,
  description,
});

/** Returns the JSON Schema of an object. */
function schemaOf(properties: object, required: readonly string[]): object {
  return { type: "object", properties, required };
}

const bash: TypedTool = {
  description:
    "Runs a command in a shell that stays open: folders and variables are kept between calls.",
  parameters: schemaOf(
    {
      command: text("The command to run. Needed unless restart is true."),
      restart: {
        type: "boolean",
        description: "Starts the shell again instead of running a command.",
      },
    },
    [],
  ),
  settings: [],
};

const viewRange = pair(
  "For view: the first and the last line to show, counted from 1; -1 is the end.",
);

function editorOf(commands: readonly string[], inserted: object): TypedTool {
  return {
    description: "Shows, creates and changes text files.",
    parameters: schemaOf(
      {
        command: oneOf("What to do.", commands),
        path: text("The path of the file, or of the folder to view."),
        file_text: text("For create: the whole text of the file."),
        old_str: text("For str_replace: the text to replace. It must occur exactly once."),
        ...inserted,
        insert_line: integer("For insert: the line after which to insert; 0 is the beginning."),
        view_range: viewRange,
      },
      ["command", "path"],
    ),
    settings: ["max_characters"],
  };
}

const editor = editorOf(["view", "create", "str_replace", "insert"], {
  new_str: text("For str_replace: the text to put in its place."),
  insert_text: text("For insert: the text to insert."),
});

const editorWithUndo = editorOf(["view", "create", "str_replace", "insert", "undo_edit"], {
  new_str: text("For str_replace: the text to put in its place. For insert: the text to insert."),
});

const memory: TypedTool = {
  description: "Keeps notes in text files below /memories, which later conversations can read.",
  parameters: schemaOf(
    {
      command: oneOf("What to do.", [
        "view",
        "create",
        "str_replace",
        "insert",
        "delete",
        "rename",
      ]),
      path: text("The path of the file or folder. For all commands but rename."),
      view_range: viewRange,
      file_text: text("For create: the whole text of the file."),
      old_str: text("For str_replace: the text to replace. It must occur exactly once."),
      new_str: text("For str_replace: the text to put in its place."),
      insert_line: integer("For insert: the line after which to insert; 0 is the beginning."),
      insert_text: text("For insert: the text to insert."),
      old_path: text("For rename: the path of the file or folder."),
      new_path: text("For rename: the new path."),
    },
    ["command"],
  ),
  settings: [],
};

const firstActions = [
  "key",
  "type",
  "mouse_move",
  "left_click",
  "left_click_drag",
  "right_click",
  "middle_click",
  "double_click",
  "screenshot",
  "cursor_position",
];
const laterActions = [
  "left_mouse_down",
  "left_mouse_up",
  "triple_click",
  "scroll",
  "hold_key",
  "wait",
];

function computer({ hasScroll = false, hasZoom = false } = {}): TypedTool {
  const actions = [
    ...firstActions,
    ...(hasScroll ? laterActions : []),
    ...(hasZoom ? ["zoom"] : []),
  ];
  return {
    description: "Uses the screen, the mouse and the keyboard of a computer.",
    parameters: schemaOf(
      {
        action: oneOf("What to do.", actions),
        coordinate: pair("The point of the screen, x and y in pixels from the upper left corner."),
        text: text("For type: the text. For key and hold_key: the keys, such as ctrl+s."),
        ...(hasScroll && {
          start_coordinate: pair("For left_click_drag: the point at which to begin."),
          scroll_direction: oneOf("For scroll.", ["up", "down", "left", "right"]),
          scroll_amount: integer("For scroll: the number of steps."),
          duration: { type: "number", description: "For hold_key and wait: the time in seconds." },
        }),
        ...(hasZoom && {
          region: {
            type: "array",
            items: { type: "integer" },
            minItems: 4,
            maxItems: 4,
            description: "For zoom: the left, upper, right and lower edge in pixels.",
          },
        }),
      },
      ["action"],
    ),
    settings: [
      "display_width_px",
      "display_height_px",
      "display_number",
      ...(hasZoom ? ["enable_zoom"] : []),
    ],
  };
}

/**
 * Schemas for the tools that Messages identifies by type. The descriptions are our own. The
 * parameter names are the ones that clients of Messages read.
 */
export const toolSchemas = { bash, editor, editorWithUndo, memory, computer };

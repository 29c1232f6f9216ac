"""C declarations as ctypes: kiln.h is read when the package is imported, so that Python has no copy of its structs.

The rule: kiln.h has enums, structs of plain fields and of one function pointer, and prototypes; nothing else is declared."""
import ctypes
import re

POINTED = r"(.*?)\(\*(\w+)\)\((.*)\)"  # a function: its result, its name, its arguments

PLAIN = {"bool": ctypes.c_bool, "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64,
         "size_t": ctypes.c_size_t, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "unsigned": ctypes.c_uint, "float": ctypes.c_float,
         "double": ctypes.c_double, "char": ctypes.c_char, "void": None}


class Header:
    """Enum values in `values`, structs in `structs`, and (result, arguments) of functions in `functions`, by their names."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", " ", text, flags=re.MULTILINE)
        text = re.sub(r"^KILN_OPTIONS\((\w+)\)", r"void kiln_\1_options_init(struct kiln_\1_options *options, size_t size);", text,
                      flags=re.MULTILINE)
        self.values, self.structs, self.functions = {}, {}, {}
        for body in re.findall(r"\benum \w+ \{(.*?)\}", text, re.DOTALL):
            number = -1
            for item in filter(None, map(str.strip, body.split(","))):
                name, _, value = map(str.strip, item.partition("="))
                number = int(value, 0) if value else number + 1
                self.values[name] = number
        for name, body in re.findall(r"\bstruct (\w+) \{(.*?)\};", text, re.DOTALL):
            self.structs[name] = type(name, (ctypes.Structure,), {"_fields_": self._fields(body)})
        for result, name, arguments in re.findall(
                r"^((?:const )?(?:struct |enum )?\w+\s*\**)\s*(kiln_\w+)\(((?:[^()]|\([^()]*\))*)\);", text, re.MULTILINE):
            self.functions[name] = (self._result(result), self._arguments(arguments))

    def _type(self, declared, buffer=ctypes.c_char_p):
        """The type of `const struct kiln_text *`; text is a `buffer`, and what has no fields here a bare pointer."""
        words = re.sub(r"\bconst\b|\*", " ", declared).split()
        stars = declared.count("*")
        name = words[-1]
        if words[0] == "enum":
            base = ctypes.c_int
        else:
            base = self.structs.get(name) if words[0] == "struct" else PLAIN[name]
        if stars and name == "char":
            base, stars = buffer, stars - 1
        elif stars and base is None:
            base, stars = ctypes.c_void_p, stars - 1
        for _ in range(stars):
            base = ctypes.POINTER(base)
        return base

    def _fields(self, body):
        fields = []
        for line in filter(None, map(str.strip, body.split(";"))):
            if re.fullmatch(POINTED, line, re.DOTALL):
                fields.append(self._function(line))
                continue
            declared, names = re.fullmatch(r"((?:const )?(?:struct |enum )?\w+(?:\s+const)?)\b(.*)", line, re.DOTALL).groups()
            for name in names.split(","):
                stars, name, count = re.fullmatch(r"\s*((?:\*\s*(?:const\s*)?)*)(\w+)(?:\[(\w+)\])?\s*", name).groups()
                kind = self._type(declared + stars)
                fields.append((name, kind * int(count) if count else kind))
        return fields

    def _function(self, declared):
        """The name and the type of a pointer to a function, which gets texts as addresses."""
        result, name, arguments = re.fullmatch(POINTED, declared, re.DOTALL).groups()
        return name, ctypes.CFUNCTYPE(self._type(result), *self._arguments(arguments, ctypes.c_void_p))

    def _arguments(self, text, buffer=ctypes.c_char_p):
        types = []
        for a in map(str.strip, re.split(r",(?![^()]*\))", text)):
            if re.fullmatch(POINTED, a, re.DOTALL):
                types.append(self._function(a)[1])
            elif a not in ("", "void"):
                types.append(self._type(re.sub(r"([\s*])\w+\s*$", r"\1", a), buffer))
        return types

    def _result(self, declared):
        return self._type(declared, ctypes.c_void_p)

# Writes the public functions and procedures of names and keys as SQL, from sql/surface, which says
# how its lines are read:
#
#   awk -v edition=extension -f scripts/surface.awk sql/surface
#   awk -v edition=portable -f scripts/surface.awk sql/surface

BEGIN {
    RS = ""
    FS = "\n"
    FIELD = "^    (COMMENT|SYMBOL|ROWS|IMMUTABLE|PORTABLE COMMENT|PORTABLE LIKE|PORTABLE)( |$)"
}

{
    read_declaration()
    if (head == "") next
    if (args ~ /namespace text, name text/) {
        write_form("_text", "name text", "text", "name")
        write_form("_bigint", "id bigint", "int8", value_of_id())
        write_form("_uuid", "id uuid", "uuid", value_of_id())
        takes_one[name] = 1
    } else if (args ~ /names text\[\]/) {
        write_form("", "names text[]", "text", "names")
        write_form("", "ids bigint[]", "int8", values_of_ids())
        write_form("", "ids uuid[]", "uuid", values_of_ids())
        # A list that a driver sends without a type. Not where that is the name of one.
        if (!(name in takes_one))
            write_form("_literal", "names text", "text", "names::pg_catalog.text[]")
    } else {
        write_form("", "", "", "")
    }
}

function value_of_id() {
    return "coalesce(id::pg_catalog.text, " \
        "(advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1])"
}

function values_of_ids() {
    return "advisory._check_list(namespace, ids::pg_catalog.text[], 'id')"
}

# ---- Reading -------------------------------------------------------------------------------------

function fail(what) {
    print FILENAME ": " what ": " $1 | "cat >&2"
    exit 1
}

# Sets head, comment, symbol, rows, is_immutable, call, own_comment; and of the head kind, name,
# args and result.
function read_declaration(    i, line, field, other, to_end) {
    head = comment = symbol = rows = is_immutable = call = own_comment = field = ""
    for (i = 1; i <= NF; i++) {
        line = $i
        if (line ~ /^#/) continue
        if (line ~ /^[^ ]/ && head != "" || line ~ /\r/)
            fail("an empty line is missing, or there is a carriage return")
        if (match(line, FIELD)) {
            field = substr(line, 5, RLENGTH - 4)
            sub(/ $/, "", field)
            line = substr(line, RLENGTH + 1)
        } else if (field == "PORTABLE") {
            line = "\n" line
        } else if (field != "" || line ~ /^    [^ ]/) {
            fail("there is no such field: " line)
        } else {
            sub(/^ */, head == "" ? "" : " ", line)
        }
        if      (field == "")                 head = head line
        else if (field == "COMMENT")          comment = comment line
        else if (field == "SYMBOL")           symbol = line
        else if (field == "ROWS")             rows = " ROWS " line
        else if (field == "IMMUTABLE")        is_immutable = 1
        else if (field == "PORTABLE COMMENT") own_comment = own_comment line
        else if (field == "PORTABLE LIKE")    call = calls[other = line]
        else                                  call = call line
    }
    if (head == "") return
    if (comment == "" || head !~ /\)/) fail("it has no comment, or no arguments")
    if (other != "" && call == "") fail("there is no " other)
    kind = "FUNCTION"
    if (sub(/^PROCEDURE /, "", head)) kind = "PROCEDURE"
    to_end = index(head, ")")
    name = substr(head, 1, index(head, "(") - 1)
    args = substr(head, length(name) + 2, to_end - length(name) - 2)
    result = substr(head, to_end + 2)
    if (result ~ /^RETURNS LIKE / && (result = results[substr(result, 14)]) == "")
        fail("there is nothing of that result")
    if (symbol == "") symbol = "advisory_" name
    calls[name] = call
    results[name] = result
}

# ---- Writing -------------------------------------------------------------------------------------

# write_form(ending of the symbol, the argument in this form, its type in casts, what the portable
# edition makes of it)
function write_form(ending, argument, type, value,    arguments, returns) {
    arguments = args
    returns = result
    if (argument != "") {
        sub(/names text\[\]|name text/, argument, arguments)
        if (result ~ /SETOF text/) sub(/SETOF text/, "SETOF " element(argument), returns)
        sub(/TABLE \(name text/, "TABLE (" singular(argument), returns)
    }
    if (edition == "portable") {
        write_portable(arguments, returns, ending, type, value)
        return
    }
    print wrapped("CREATE " kind " advisory." name "(", arguments ")")
    write_result(returns)
    print "    AS 'MODULE_PATHNAME', '" symbol ending "'"
    print "    LANGUAGE C" c_properties() ";"
    write_comment(arguments, comment)
}

function write_portable(arguments, returns, ending, type, value,    body) {
    if (call == "") return
    # The form for text is written by hand, and the others call it.
    if (ending != "_text" || index(call, "advisory." name "(") != 1) {
        body = filled(call, type, value)
        print wrapped("CREATE OR REPLACE " kind " advisory." name "(", arguments ")")
        if (kind == "PROCEDURE") {
            print "    LANGUAGE plpgsql AS $$"
            print "DECLARE"
            print "    ignored integer;"
            print "BEGIN"
            print folded("    CALL " body ";")
            print "END $$;"
        } else {
            write_result(returns)
            print "    LANGUAGE sql " (is_immutable ? "IMMUTABLE PARALLEL SAFE" : "COST 1000") \
                " AS $$"
            print folded("    SELECT " body " $$;")
        }
    }
    write_comment(arguments, own_comment == "" ? comment : own_comment)
}

# The second line of a function.
function write_result(returns) {
    if (returns == "") return
    print wrapped("    " (returns ~ /TABLE/ ? "RETURNS TABLE (" : returns), rest_of_table(returns))
}

function c_properties() {
    if (kind == "PROCEDURE") return ""
    return is_immutable ? " IMMUTABLE PARALLEL SAFE" : " VOLATILE PARALLEL UNSAFE COST 1000" rows
}

# The portable edition's expression for this name and form.
function filled(text, type, value,    by_key, with_label) {
    by_key = args !~ /namespace text/
    with_label = args ~ /label text/
    gsub(/<must>/, name ~ /^try_/ ? "'f'" : "'t'", text)
    gsub(/<xact>/, name ~ /xact_/ ? "'t'" : "'f'", text)
    gsub(/<xact_>/, name ~ /xact_/ ? "xact_" : "", text)
    gsub(/<shared>/, name ~ /_shared/ ? "true" : "false", text)
    gsub(/<_shared>/, name ~ /_shared/ ? "_shared" : "", text)
    gsub(/\n *<bad label>/,
        with_label ? "\n                  OR label OPERATOR(pg_catalog.=) ''" : "", text)
    gsub(/<called>/, !by_key ? "namespace, <name>" : with_label ? "NULL, label" : "NULL, NULL",
        text)
    gsub(/<key>/, by_key ? "key" : "advisory.key(namespace, <name>)", text)
    gsub(/<names?>/, value, text)
    gsub(/<type>/, type, text)
    return text
}

function write_comment(arguments, text) {
    gsub(/'/, "''", text)
    print wrapped("COMMENT ON " kind " advisory." name "(", types_of(arguments) ") IS")
    print "    '" text "';"
    print ""
}

# The types of the arguments that a call has.
function types_of(arguments,    list, count, i, types) {
    count = split(arguments, list, ", ")
    types = ""
    for (i = 1; i <= count; i++) {
        if (list[i] ~ /^OUT /) continue
        sub(/^INOUT /, "", list[i])
        sub(/ DEFAULT .*/, "", list[i])
        sub(/^[^ ]* /, "", list[i])
        types = types (types == "" ? "" : ", ") list[i]
    }
    return types
}

function element(argument) {
    sub(/^[^ ]* /, "", argument)
    sub(/\[\]/, "", argument)
    return argument
}

function singular(argument) {
    sub(/s /, " ", argument)
    sub(/\[\]/, "", argument)
    return argument
}

function rest_of_table(returns) {
    return returns ~ /TABLE/ ? substr(returns, index(returns, "(") + 1) : ""
}

# A beginning and a list, in lines of at most 100 characters: the further ones stand under the first
# element.
function wrapped(beginning, list,    part, count, i, line, lines, indent) {
    indent = sprintf("%" length(beginning) "s", "")
    count = split(list, part, ", ")
    line = beginning
    lines = ""
    for (i = 1; i <= count; i++) {
        part[i] = part[i] (i < count ? "," : "")
        if (i > 1 && length(line) + 1 + length(part[i]) > 100) {
            lines = lines line "\n"
            line = indent part[i]
        } else {
            line = line (i > 1 ? " " : "") part[i]
        }
    }
    return lines line
}

# An expression whose lines are too long for 100 characters once a form is filled in.
function folded(text,    line, count, i, lines, at) {
    count = split(text, line, "\n")
    lines = ""
    for (i = 1; i <= count; i++) {
        while (length(line[i]) > 100) {
            for (at = 100; at > 0 && substr(line[i], at - 1, 2) != ", "; at--) ;
            if (at <= 12) break
            lines = lines substr(line[i], 1, at - 1) "\n"
            line[i] = "            " substr(line[i], at + 1)
        }
        lines = lines line[i] (i < count ? "\n" : "")
    }
    return lines
}

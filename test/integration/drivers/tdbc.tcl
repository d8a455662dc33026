# tdbc::postgres. Runs the calls that driver_calls.t writes, and says what came of each; see
# README.md here.
package require tdbc::postgres

# Tcl has strings only; a NULL is a variable without a value.
proc said {db sql arguments} {
    set number 0
    foreach argument $arguments {
        incr number
        regexp {^([^:]*):(.*)$} $argument -> kind value
        if {[string match {*\[\]} $kind]} { set value "{$value}" }
        if {$kind ne "null"} { set v$number $value }
    }
    set statement [$db prepare $sql]
    try {
        set rows {}
        $statement foreach -as lists -columnsvariable columns row {
            set shown {}
            foreach one $row { lappend shown "'$one'" }
            lappend rows [join $shown |]
        }
        return [list [join $rows " "] {} {} {} {}]
    } on error {message options} {
        set code [dict get $options -errorcode]
        set fields [list "error [lindex $code 2]"]
        foreach field {DETAIL: HINT: SCHEMA CONSTRAINT} {
            lappend fields [expr {[string match "*$field*" "$message $code"] ? $message : {}}]
        }
        return $fields
    } finally {
        $statement close
    }
}

fconfigure stdout -encoding utf-8
tdbc::postgres::connection create db -host $env(PGHOST) -port $env(PGPORT) -user $env(PGUSER) \
    -database $env(PGDATABASE)
set calls [open [lindex $argv 0]]
fconfigure $calls -encoding utf-8
while {[gets $calls line] >= 0} {
    set columns [split $line \t]
    set said {}
    foreach one [said db [lindex $columns 0] [lrange $columns 1 end]] {
        lappend said [regsub -all {\s+} $one " "]
    }
    puts [join $said \t]
}
close $calls
db close

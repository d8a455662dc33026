/*
 * What JDBC sends, and what comes of it. Used by jdbc.t: each line says what was tried, what came,
 * what should. The second argument is the list of calls that other drivers make, too.
 */
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.sql.*;
import java.util.*;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

public class Calls {
    static final UUID ID = UUID.fromString("00000000-0000-0000-0000-00000000000A");
    static final String NAME = "o'neill \\ \u2603";

    static final String ESCAPE = "{call advisory.await_lock(?, ?)}";

    static Connection connection;
    static Connection watcher;
    static int pid;

    static void report(String what, Object got, Object expected) {
        System.out.println(what + "\t" + got + "\t" + expected);
    }

    static void says(String what, String text, String part) {
        report(what + "says " + part, text.contains(part), true);
    }

    /** README's line. */
    static long key(String namespace, Object name) {
        try {
            byte[] bytes = (namespace + "\0" + name).getBytes(StandardCharsets.UTF_8);
            return ByteBuffer.wrap(MessageDigest.getInstance("SHA-256").digest(bytes)).getLong();
        } catch (java.security.NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    static int pidOf(Connection of) throws SQLException {
        return of.unwrap(org.postgresql.PGConnection.class).getBackendPID();
    }

    /** The bigint keys that the connection holds, as another one sees them in the server's own
        view. */
    static SortedSet<Long> held() throws SQLException {
        SortedSet<Long> keys = new TreeSet<>();
        try (PreparedStatement locks = watcher.prepareStatement(
                "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks"
                + " WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid = ?")) {
            locks.setInt(1, pid);
            try (ResultSet rows = locks.executeQuery()) {
                while (rows.next()) {
                    keys.add(rows.getLong(1));
                }
            }
        }
        return keys;
    }

    static SortedSet<Long> keys(Object... names) {
        SortedSet<Long> keys = new TreeSet<>();
        for (Object name : names) {
            keys.add(key("jdbc", name));
        }
        return keys;
    }

    /** What a statement returns in its first column, or the SQLSTATE. */
    static String result(PreparedStatement statement) throws SQLException {
        try {
            if (!statement.execute()) {
                return "done";
            }
            List<String> values = new ArrayList<>();
            try (ResultSet rows = statement.getResultSet()) {
                while (rows.next()) {
                    values.add(rows.getString(1));
                }
            }
            return String.join(" ", values);
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }

    static void letGo() throws SQLException {
        if (!connection.getAutoCommit()) {
            connection.rollback();
        }
        run(connection, "SELECT pg_advisory_unlock_all()");
        if (!connection.getAutoCommit()) {
            connection.rollback();
        }
    }

    static void run(Connection on, String sql) throws SQLException {
        try (Statement statement = on.createStatement()) {
            statement.execute(sql);
        }
    }

    /** A parameter that is not bound as its Java type says. */
    interface Setter {
        void set(PreparedStatement statement, int at) throws SQLException;
    }

    static Setter setNull(int type) {
        return (statement, at) -> statement.setNull(at, type);
    }

    /** Without a type. */
    static Setter setOther(Object value) {
        return (statement, at) -> statement.setObject(at, value, Types.OTHER);
    }

    /** The driver's setObject() calls setString(), setLong() and so on for the value's type. */
    static void bind(PreparedStatement statement, Object... values) throws SQLException {
        for (int at = 1; at <= values.length; at++) {
            Object value = values[at - 1];
            if (value instanceof Setter) {
                ((Setter) value).set(statement, at);
            } else {
                statement.setObject(at, value);
            }
        }
    }

    /** A call with these values. If it is to be made so many times, that is more often than
        prepareThreshold (5), after which the driver uses a named statement and binary values. */
    static void call(String what, int times, PreparedStatement statement, String expected,
        SortedSet<Long> locks, Object... values) throws SQLException {
        for (int time = 1; time <= times; time++) {
            bind(statement, values);
            report(what + ", call " + time + ": result", result(statement), expected);
            report(what + ", call " + time + ": those locks", held(), locks);
            letGo();
        }
        statement.close();
    }

    static void call(String what, int times, String sql, String expected, SortedSet<Long> locks,
        Object... values) throws SQLException {
        call(what, times, connection.prepareStatement(sql), expected, locks, values);
    }

    static void call(String what, String sql, String expected, SortedSet<Long> locks,
        Object... values) throws SQLException {
        call(what, 1, sql, expected, locks, values);
    }

    /** A value of the list, as a program has it. */
    static Object valueOf(String text) throws SQLException {
        String[] part = text.split(":", 2);
        if (part[0].endsWith("[]")) {
            String kind = part[0].substring(0, part[0].length() - 2);
            List<Object> elements = new ArrayList<>();
            for (String element : part[1].isEmpty() ? new String[0] : part[1].split(",")) {
                elements.add(valueOf(kind + ":" + element));
            }
            return connection.createArrayOf(kind, elements.toArray());
        }
        switch (part[0]) {
            case "null": return setNull(Types.OTHER);
            case "integer": return Integer.valueOf(part[1]);
            case "bigint": return Long.valueOf(part[1]);
            case "uuid": return UUID.fromString(part[1]);
            // It takes the unit "s" for none.
            case "interval": return new PGInterval(part[1].replaceAll("s$", "seconds"));
            default: return part[1];
        }
    }

    static void takesValues(String list) throws Exception {
        String[] functions = {};
        for (String line : Files.readAllLines(Paths.get(list))) {
            if (line.startsWith("= ")) {
                functions = line.substring(2).split(" ");
            } else if (!line.startsWith("#")) {
                String[] column = line.split("\t", -1);
                Object[] values = new Object[column.length - 4];
                for (int at = 0; at < values.length; at++) {
                    values[at] = valueOf(column[at + 4]);
                }
                SortedSet<Long> locks = new TreeSet<>();
                for (String name : column[3].isEmpty() ? new String[0] : column[3].split(",")) {
                    locks.add(key("calls", name));
                }
                connection.setAutoCommit(column[1].startsWith("CALL"));
                for (String function : functions) {
                    call(function + ", " + column[0], 7,
                        column[1].replace("F(", function + "("), column[2], locks, values);
                }
            }
        }
    }

    static void takesOtherValues() throws SQLException {
        for (String function : new String[] {"lock", "xact_lock", "try_lock", "try_xact_lock"}) {
            String two = "SELECT advisory." + function + "(?, ?)";
            String three = "SELECT advisory." + function + "(?, ?, ?)";
            String with = function + ", ";
            call(with + "setShort", two, "t", keys(42), "jdbc", (short) 42);
            call(with + "setObject(OTHER), without a type", two, "t", keys(NAME),
                setOther("jdbc"), setOther(NAME));
            call(with + "a timeout without a type", three, "t", keys(ID),
                "jdbc", ID, setOther("1s"));
            call(with + "setNull(NULL) as the timeout", three, "t", keys(NAME),
                "jdbc", NAME, setNull(Types.NULL));
            // No cast leads from varchar to interval, in no function.
            call(with + "a timeout by setString alone", three, "42883", keys(), "jdbc", NAME, "1s");
        }
        String lock = "SELECT advisory.lock(?, ?)";
        for (int type : new int[] {Types.VARCHAR, Types.BIGINT}) {
            call("setNull(" + type + ")", lock, "22004", keys(), "jdbc", setNull(type));
        }
        Setter noString = (statement, at) -> statement.setString(at, null);
        call("setString(null)", lock, "22004", keys(), "jdbc", noString);
        call("setObject(null)", lock, "22004", keys(), "jdbc", null);
        call("a cast to text", "SELECT advisory.lock(?::text, ?::text)", "t", keys(42),
            "jdbc", 42L);
        call("a cast to uuid", "SELECT advisory.lock(?, ?::uuid)", "t", keys(ID),
            "jdbc", ID.toString().toUpperCase());
        try (PreparedStatement statement = connection.prepareStatement(lock)) {
            // The driver has to prepare it again, for another function.
            for (int time = 0; time < 14; time++) {
                Object name = time % 2 == 0 ? (Object) 42L : NAME;
                bind(statement, "jdbc", name);
                report("types in turn", result(statement), "t");
                report("types in turn: that lock", held(), keys(name));
                letGo();
            }
        }
        call("lock and unlock in one statement",
            "SELECT advisory.lock(?, ?) AND advisory.unlock(?, ?)", "t", keys(),
            "jdbc", 42L, "jdbc", "42");
        String all = "SELECT advisory.lock_all(?, ?)";
        call("lock_all, varchar[]", 7, all, "t", keys("a", "b", NAME),
            "jdbc", connection.createArrayOf("varchar", new String[] {"b", "a", NAME}));
        call("lock_all, bigint[] of Long[]", 7, all, "t", keys(1, 3, 1L << 62),
            "jdbc", connection.createArrayOf("bigint", new Long[] {3L, 1L, 1L << 62}));
        call("lock_all, a null in it", all, "22004", keys(),
            "jdbc", connection.createArrayOf("text", new String[] {"a", null}));
        call("lock_all, setObject(String[])", all, "t", keys("a", "b"),
            "jdbc", new String[] {"a", "b"});
        call("lock_all, setObject(long[])", all, "t", keys(1, 2), "jdbc", new long[] {1, 2});
    }

    /** The types of what comes back. */
    static void givesValues() throws SQLException {
        Object[][] given = {
            {"SELECT advisory.is_locked('jdbc', 'none')", false},
            {"SELECT advisory.key('billing', 'invoice:42')", 1572001551135567388L},
            {"SELECT interval '1.5 s'", new PGInterval("1.5 seconds")},
            {"SELECT NULL::integer", null},
            {"SELECT 1 WHERE advisory.try_lock('jdbc', 'a')", 1},
            {"CALL advisory.await_acquire('jdbc', 'slots', 3)", 1},
        };
        for (Object[] call : given) {
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery((String) call[0])) {
                rows.next();
                report((String) call[0], rows.getObject(1), call[1]);
            }
        }
        letGo();
        for (String none : new String[] {"5 s", "5 m", "250 ms", "1 h"}) {
            report("PGInterval of " + none, new PGInterval(none), new PGInterval(0, 0, 0, 0, 0, 0));
        }
        for (String text : new String[] {"0.25 seconds", "00:00:00.25"}) {
            report("PGInterval of " + text, new PGInterval(text),
                new PGInterval(0, 0, 0, 0, 0, 0.25));
        }
    }

    static void awaits() throws SQLException {
        String one = "CALL advisory.await_lock(?, ?)";
        call("CALL, without types", one, "done", keys(NAME), setOther("jdbc"), setOther(NAME));
        call("CALL, a timeout in it", 7, "CALL advisory.await_lock(?, ?, '10 min')", "done",
            keys(NAME), "jdbc", NAME);
        call("prepareCall(CALL)", 7, connection.prepareCall(one), "done", keys(NAME),
            "jdbc", NAME);
        // JDBC's own escape is made into a SELECT, unless the connection says
        // escapeSyntaxCallMode=callIfNoReturn.
        call("prepareCall({call}) of a procedure", 1, connection.prepareCall(ESCAPE), "42809",
            keys(), "jdbc", NAME);
        try (CallableStatement statement =
                connection.prepareCall("{? = call advisory.lock(?, ?)}")) {
            statement.registerOutParameter(1, Types.BIT);
            statement.setString(2, "jdbc");
            statement.setLong(3, 42);
            statement.execute();
            report("prepareCall({? = call}) of a function", statement.getBoolean(1), true);
            report("prepareCall({? = call}) of a function: that lock", held(), keys(42));
        }
        letGo();
        run(connection, "CALL advisory.await_lock('jdbc', 'a')");
        report("a plain statement", held(), keys("a"));
        letGo();
    }

    /** Where the driver sends BEGIN itself, in front of the first statement and without waiting for
        an answer. */
    static void awaitsInTransactions() throws SQLException {
        String sql = "CALL advisory.await_lock(?, ?)";
        connection.setAutoCommit(false);
        call("CALL in a transaction", 7, sql, "done", keys("a"), "jdbc", "a");
        run(connection, "SELECT count(*) FROM pg_class");
        call("CALL after a query", sql, "done", keys("a"), "jdbc", "a");
        run(connection, "CREATE TEMPORARY TABLE written ()");
        call("CALL after writing", sql, "25001", keys(), "jdbc", "a");
        try (Statement cursor = connection.createStatement()) {
            cursor.setFetchSize(5);         // a portal, of which a few rows are fetched at a time
            try (ResultSet rows = cursor.executeQuery("SELECT * FROM pg_class")) {
                rows.next();
                call("CALL beside a result that is still being fetched", sql, "25001", keys(),
                    "jdbc", "a");
            }
        }
        letGo();
        connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        call("CALL in REPEATABLE READ", sql, "25001", keys(), "jdbc", "a");
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setAutoCommit(true);
        try (Statement batch = connection.createStatement()) {
            batch.addBatch("CALL advisory.await_lock('jdbc', 'a')");
            batch.addBatch("CALL advisory.await_lock('jdbc', 'b')");
            batch.executeBatch();
            report("a batch of calls", held(), keys("a", "b"));
        }
        letGo();
    }

    static void failsAsAProgramExpects() throws SQLException {
        run(watcher, "SELECT advisory.lock('jdbc', 'taken')");
        for (String sql : new String[] {
                "SELECT advisory.lock(?, ?, '20ms')",
                "SELECT advisory.xact_lock(?, ?, '0s')",
                "SELECT advisory.lock_shared(?, ?, '0s')",
                "CALL advisory.await_lock(?, ?, '20ms')"}) {
            for (boolean autocommit : new boolean[] {true, false}) {
                connection.setAutoCommit(autocommit);
                String what = sql + (autocommit ? ", autocommit: " : ", in a transaction: ");
                try (PreparedStatement statement = connection.prepareStatement(sql)) {
                    bind(statement, "jdbc", "taken");
                    statement.execute();
                    report(what + "fails", false, true);
                } catch (PSQLException error) {
                    ServerErrorMessage server = error.getServerErrorMessage();
                    String holder = String.valueOf(pidOf(watcher));
                    report(what + "SQLState", error.getSQLState(), "55P03");
                    report(what + "schema and constraint",
                        server.getSchema() + "/" + server.getConstraint(), "jdbc/taken");
                    says(what, server.getMessage(), "advisory lock \"jdbc/taken\"");
                    says(what, server.getDetail(), "Process " + holder + " of role ");
                    says(what, server.getDetail(), "application \"watcher\"");
                    says(what, server.getHint(),
                        "advisory.terminate_holder('jdbc', 'taken', " + holder
                        + ", kind => 'lock')");
                }
                letGo();
                report(what + "nothing is held", held(), keys());
            }
        }
        connection.setAutoCommit(false);
        call("try_lock, and the transaction goes on", 7,
            "SELECT advisory.try_lock(?, ?) = false AND count(*) > 0 FROM pg_class", "t", keys(),
            "jdbc", "taken");
        connection.setAutoCommit(true);
        for (String sql : new String[] {
                "SELECT advisory.lock('jdbc', 'taken')",
                "CALL advisory.await_lock('jdbc', 'taken')"}) {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setQueryTimeout(1);       // seconds, after which the driver cancels
                report(sql + ", setQueryTimeout", result(statement), "57014");
                report(sql + ", setQueryTimeout: nothing is held", held(), keys());
            }
        }
        run(watcher, "SELECT advisory.unlock('jdbc', 'taken')");
        try (Statement statement = connection.createStatement()) {
            try (ResultSet row =
                    statement.executeQuery("SELECT advisory.unlock('jdbc', 'taken')")) {
                row.next();
                report("unlock of what is not held", row.getBoolean(1), false);
            }
            report("unlock of what is not held: a warning",
                statement.getWarnings().getMessage().contains("jdbc/taken"), true);
        }
    }

    static String value(String sql) throws SQLException {
        try (Statement statement = watcher.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            return row.next() ? row.getString(1) : "no row";
        }
    }

    /** Does the session, while it waits, have a snapshot, which would be in the way of CREATE INDEX
        CONCURRENTLY? */
    static void waits(String what, String sql, int before, boolean snapshot) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, "taken");
            for (int time = 0; time < before; time++) {
                statement.execute();
            }
            letGo();
            run(watcher, "SELECT advisory.lock('jdbc', 'taken')");
            String[] came = new String[1];
            Thread waiter = new Thread(() -> {
                try {
                    came[0] = result(statement);
                } catch (SQLException error) {
                    came[0] = error.toString();
                }
            });
            waiter.start();
            String of = " FROM pg_stat_activity WHERE pid = " + pid;
            while (waiter.isAlive() && !value(
                "SELECT wait_event" + of + " AND wait_event_type = 'Lock'").equals("advisory")) {
                Thread.sleep(5);
            }
            report(what + ": has a snapshot",
                value("SELECT backend_xmin IS NOT NULL OR backend_xid IS NOT NULL" + of),
                snapshot ? "t" : "f");
            run(watcher, "SELECT advisory.unlock('jdbc', 'taken')");
            waiter.join();
            report(what + ": comes back", came[0], sql.startsWith("CALL") ? "done" : "t");
            report(what + ": holds the lock", held(), keys("taken"));
        }
        letGo();
    }

    static void waitsWithoutSnapshot() throws Exception {
        for (boolean autocommit : new boolean[] {true, false}) {
            connection.setAutoCommit(autocommit);
            for (int before : new int[] {0, 7}) {
                String what = ", after " + before + " calls, "
                    + (autocommit ? "autocommit" : "in a transaction");
                waits("SELECT" + what, "SELECT advisory.lock('jdbc', ?)", before, true);
                waits("CALL" + what, "CALL advisory.await_lock('jdbc', ?)", before, false);
            }
        }
        connection.setAutoCommit(true);
    }

    static void connect(String url, String settings) throws SQLException {
        connection = DriverManager.getConnection(url + "&ApplicationName=calls" + settings);
        pid = pidOf(connection);
    }

    static void withOtherSettings(String url) throws SQLException {
        connect(url, "&stringtype=unspecified");
        String lock = "SELECT advisory.lock(?, ?, ?)";
        call("stringtype=unspecified, lock", 7, lock, "t", keys(NAME), "jdbc", NAME, "1s");
        call("stringtype=unspecified, a number", 7, lock, "t", keys(42), "jdbc", 42L, "1s");
        call("stringtype=unspecified, digits", "SELECT advisory.lock(?, ?)", "t", keys(42),
            "jdbc", "42");
        call("stringtype=unspecified, lock_all", 7, "SELECT advisory.lock_all(?, ?, ?)", "t",
            keys("a", "b"), "jdbc", "{a,b}", "1s");
        call("stringtype=unspecified, CALL", 7, "CALL advisory.await_lock(?, ?, ?)", "done",
            keys(NAME), "jdbc", NAME, "1s");
        connection.close();

        // The driver writes values into the statement.
        connect(url, "&preferQueryMode=simple");
        String await = "CALL advisory.await_lock(?, ?, '1s')";
        call("the simple protocol, lock", "SELECT advisory.lock(?, ?)", "t", keys(NAME),
            "jdbc", NAME);
        call("the simple protocol, a number", "SELECT advisory.lock(?, ?)", "t", keys(42),
            "jdbc", 42L);
        call("the simple protocol, CALL", await, "done", keys(NAME), "jdbc", NAME);
        connection.setAutoCommit(false);
        call("the simple protocol, CALL in a transaction", await, "done", keys(NAME),
            "jdbc", NAME);
        connection.close();

        connect(url, "&escapeSyntaxCallMode=callIfNoReturn");
        call("escapeSyntaxCallMode=callIfNoReturn, prepareCall({call})", 1,
            connection.prepareCall(ESCAPE), "done", keys(NAME), "jdbc", NAME);
        connection.close();
    }

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        System.setOut(new java.io.PrintStream(System.out, true, "UTF-8"));
        watcher = DriverManager.getConnection(url + "&ApplicationName=watcher");
        connect(url, "");
        takesValues(arguments[1]);
        connection.setAutoCommit(false);
        takesOtherValues();
        connection.setAutoCommit(true);
        call("with autocommit, a transaction-level lock is gone at once",
            "SELECT advisory.xact_lock('jdbc', ?)", "t", keys(), NAME);
        call("with autocommit, a session-level lock is not", "SELECT advisory.lock('jdbc', ?)", "t",
            keys(NAME), NAME);
        givesValues();
        awaits();
        awaitsInTransactions();
        failsAsAProgramExpects();
        waitsWithoutSnapshot();
        connection.close();
        withOtherSettings(url);
        watcher.close();
        System.out.println("end");
    }
}

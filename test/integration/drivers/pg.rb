# Ruby's pg. Runs the calls that driver_calls.t writes, and says what came of each; see README.md
# here.
require 'pg'

# A value of the list, as a program has it. There are no durations.
def value_of(text)
  kind, value = text.split(':', 2)
  return value.split(',') if kind.end_with?('[]')

  { 'null' => nil, 'integer' => value.to_i, 'bigint' => value.to_i }.fetch(kind, value)
end

def shown(value)
  value.nil? ? 'null' : "'#{value}'"
end

FIELDS = [PG::PG_DIAG_MESSAGE_DETAIL, PG::PG_DIAG_MESSAGE_HINT, PG::PG_DIAG_SCHEMA_NAME,
          PG::PG_DIAG_CONSTRAINT_NAME].freeze

connection = PG.connect(dbname: ENV.fetch('PGDATABASE'))
notices = []
connection.set_notice_processor { |message| notices << message }
File.foreach(ARGV[0], chomp: true) do |line|
  sql, *values = line.split("\t")
  notices.clear
  begin
    rows = connection.exec_params(sql, values.map { |value| value_of(value) }).values
    said = [rows.map { |row| row.map { |one| shown(one) }.join('|') }.join(' '), '', '', '', '']
  rescue PG::Error => e
    said = ["error #{e.result.error_field(PG::PG_DIAG_SQLSTATE)}",
            *FIELDS.map { |field| e.result.error_field(field) }]
  end
  puts((said + notices).map { |one| one.to_s.gsub(/\s+/, ' ') }.join("\t"))
end
